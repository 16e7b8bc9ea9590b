"""Printed text cannot control a terminal, and programs that read it get the same content."""

import json
import sys
import unicodedata

import pytest

from hivepipe.cli.terminal import (
    guard_streams,
    printable_lines,
    say,
    say_archived_line,
    say_field,
    say_text,
)
from hivepipe.text.printable_json import printable_json
from hivepipe.text.visible import printable

# All of the first two planes and of the tags and selectors, and a sample of the other planes.
_CODES = (*range(0x20000), *range(0xE0000, 0xE0200), *range(0x20000, sys.maxunicode + 1, 61))
ALL_CHARACTERS = [chr(code) for code in _CODES]
CONTROL = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u3164\ufe00\ufe0f\uffa0"


def test_no_control_or_invisible_character_is_printed() -> None:
    printed = printable("".join(ALL_CHARACTERS))
    assert {unicodedata.category(char) for char in printed}.isdisjoint(CONTROL)
    assert not set(printed) & set(INVISIBLE)
    assert {"a", "ß", "漢", "😀", "é"} <= set(printed)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2J", r"a\x1b[2J"),
        ("a\nb\tc\r", r"a\nb\tc\r"),
        ("\x9b31m\u202e\u200b\udcff\U000e0041", r"\x9b31m\u202e\u200b\udcff\U000e0041"),
        ("1\u00a0000\u3000m", "1 000 m"),
        (None, ""),
    ],
)
def test_control_characters_are_escaped(text: str | None, shown: str) -> None:
    assert printable(text) == shown


def test_a_text_keeps_its_lines() -> None:
    assert printable_lines("a\r\n\tb\x0bc\n") == ["a", "    b\\x0bc", ""]


@pytest.mark.parametrize("ascii_only", [True, False])
def test_printable_json_has_the_same_content(ascii_only: bool) -> None:
    sound = "".join(char for char in ALL_CHARACTERS if unicodedata.category(char) != "Cs")
    texts = {"every": sound, "key\x7f\u202e": ["\U000e0041", "\udcff"]}
    document = json.dumps(texts, ensure_ascii=ascii_only, indent=2)
    printed = printable_json(document)
    assert {unicodedata.category(char) for char in printed.replace("\n", "")}.isdisjoint(CONTROL)
    assert not set(printed) & set(INVISIBLE)
    assert json.loads(printed) == json.loads(document)


def test_say_prints_one_line_and_say_text_a_margin(capsys: pytest.CaptureFixture[str]) -> None:
    say("a\nb", err=True)
    say_text("a\nb\n")
    say_field("name\n", "a\nb", 6)
    captured = capsys.readouterr()
    assert captured.err == "a\\nb\n"
    assert captured.out == "| a\n| b\n|\nname\\n a\n       | b\n"


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (b'{"a": "\xe2\x80\xae\x7f"}\n', '{"a": "\\u202e\\u007f"}\n'),
        (b'{"a":\t1}\r\n', '{"a": 1} \n'),
        (b"no JSON \x1b[2J\xff\n", "| no JSON \\x1b[2J\\udcff\n"),
        (b"[" * 100_000, "| " + "[" * 100_000 + "\n"),
    ],
)
def test_an_archived_line_is_printed_without_control_characters(
    line: bytes, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    say_archived_line(line)
    assert capsys.readouterr().out == shown


def test_everything_written_to_standard_streams_is_escaped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, getattr(sys, name))
    guard_streams()
    guard_streams()  # a second call changes nothing
    print("a\x1b[2J\nb")
    print("Choose from:\n\tc", file=sys.stderr)  # as click indents
    sys.stderr.writelines(["\u202e"])
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("a\\x1b[2J\nb\n", "Choose from:\n        c\n\\u202e")
