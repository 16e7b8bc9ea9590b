"""`hivepipe transcript` shows a conversation in a terminal, as Markdown, as HTML and as JSON."""

import errno
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.archive_scene import AGENT, SESSION, TOKEN, line
from tests.conftest import CLI, Home, fire, made_home
from tests.integration.test_cli_listings import command

HOSTILE = (
    "evil\x1b[2J\u202e <script>alert(1)</script> \"'&amp; </pre></section>\n### user\n| forged"
)


def transcript_line(home: Home, number: int, kind: str, *content: Any, **more: Any) -> bytes:
    fields = json.loads(line(number, cwd=str(home.project)))
    return (
        json.dumps(
            {
                **fields,
                "type": kind,
                "message": {**fields["message"], "role": kind, "content": [*content]},
                **more,
            }
        ).encode()
        + b"\n"
    )


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def answer(id: str, words: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": words, **more}


@pytest.fixture
def home(private_home: Home) -> Home:
    """A home of this test alone, for tests that add lines."""
    return prepared(private_home)


@pytest.fixture(scope="module")
def shared() -> Iterator[Home]:
    """A home for all tests that only read."""
    with made_home() as home:
        yield prepared(home)


def prepared(home: Home) -> Home:
    """Archive a session with an edit, a failure, and a subagent."""
    command(home, "init", "--local", "--no-probe")
    folder = home.root / ".claude" / "projects" / "-shop"
    beside = folder / SESSION / "subagents"
    beside.mkdir(parents=True)

    def each(number: int, kind: str, *content: Any, **more: Any) -> bytes:
        return transcript_line(home, number, kind, *content, **more)

    (folder / f"{SESSION}.jsonl").write_bytes(
        each(1, "user", text(f"Mend the cart; the key is {TOKEN}"))
        + each(
            2,
            "assistant",
            text("I edit it."),
            call("t1", "Edit", file_path="src/cart.py", old_string="x = 1", new_string="x = 2"),
        )
        + each(3, "user", answer("t1", "The file\nhas been\nupdated"))
        + each(4, "assistant", call("t2", "Bash", command="make test"))
        + each(5, "user", answer("t2", "exit code 1\nassert x == 3", is_error=True))
        + each(6, "assistant", call("t3", "Task", subagent_type="Explore", description="look"))
        + each(7, "user", answer("t3", "found it"), toolUseResult={"agentId": AGENT})
        + each(8, "assistant", text(HOSTILE))
    )
    (beside / f"agent-{AGENT}.jsonl").write_bytes(
        each(9, "assistant", text("In the attic."), agentId=AGENT)
    )
    command(home, "archive", "sweep")
    return home


def test_a_transcript_is_shown_as_a_conversation(shared: Home) -> None:
    shown = command(shared, "transcript", SESSION[:8], "--utc")
    head, *turns = shown.split("\n\n")
    assert f"session  {SESSION}" in head
    assert f"folder   {shared.project}" in head
    assert [turn.splitlines()[0].strip() for turn in turns] == [
        "2026-01-10 00:01:00Z user",
        "2026-01-10 00:02:00Z claude",
        f"2026-01-10 00:07:00Z agent Explore {AGENT}",
        "2026-01-10 00:09:00Z claude",
        "2026-01-10 00:08:00Z claude",
    ]
    assert turns[1].splitlines()[1:] == [
        "| I edit it.",
        "| * Edit src/cart.py",
        "|     - x = 1",
        "|     + x = 2",
        "|   The file (3 lines)",
        "| * Bash make test",
        "|   ! exit code 1",
        "|   ! assert x == 3",
        "| * Task Explore look",
        "|   found it",
    ]
    assert turns[3].splitlines()[1] == "    | In the attic."
    assert TOKEN not in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\n| | forged" in shown
    assert shown == command(shared, "transcript", "last", "--utc")


def test_the_last_session_is_not_an_older_one_that_was_archived_later(home: Home) -> None:
    older = SESSION.replace("7", "6")
    line = json.loads(transcript_line(home, 0, "user", text("Long ago.")))
    line |= {"sessionId": older, "timestamp": "2020-01-10T00:00:00Z"}
    folder = home.root / ".claude" / "projects" / "-shop"
    (folder / f"{older}.jsonl").write_text(json.dumps(line) + "\n")
    command(home, "archive", "sweep")
    assert "Long ago." in command(home, "transcript", older)
    assert "Long ago." not in command(home, "transcript", "last")


@pytest.mark.parametrize(
    "words", [("session", "log"), ("tail", "--once", "--session"), ("agents", "--session")]
)
def test_the_last_session_is_meant_wherever_a_session_is_shown(
    shared: Home, words: tuple[str, ...]
) -> None:
    assert command(shared, *words, "last") == command(shared, *words, SESSION)


def test_a_hit_of_search_can_be_opened(shared: Home) -> None:
    for asked, wanted in (("assert x", "| »"), ("attic", "attic"), ("Mend the", "Mend")):
        answer_of = json.loads(command(shared, "search", "--json", asked))
        (hit,) = answer_of["hits"]
        assert f"    {hit['open']}" in command(shared, "search", asked).splitlines()
        opened = command(shared, *hit["open"].split()[1:])
        marked = [each for each in opened.splitlines() if "» " in each]
        assert len(marked) == 1
        assert asked.split()[0] in opened
        assert wanted.strip("| ") in opened
    assert "has no byte 999999" in command(
        shared, "transcript", SESSION, "--around", "999999", expect=1
    )
    command(shared, "transcript", SESSION, "--around", "x", expect=64)


def test_around_shows_a_few_pieces_of_many(home: Home) -> None:
    path = home.root / ".claude" / "projects" / "-shop" / f"{SESSION}.jsonl"
    with path.open("ab") as file:
        for number in range(10, 400):
            file.write(
                transcript_line(
                    home, number % 1000, "user", text(f"word{number}"), uuid=f"w{number}"
                )
            )
    command(home, "archive", "sweep")
    (hit,) = json.loads(command(home, "search", "--json", "word200", "-w"))["hits"]
    opened = command(home, *hit["open"].split()[1:])
    assert re.findall(r"word\d+", opened) == [f"word{number}" for number in range(180, 241)]
    assert "» | word200" in opened


def test_a_prompt_that_replaces_another_is_announced(home: Home) -> None:
    """After /rewind, the next prompt follows the same line as the one that was taken back."""
    path = home.root / ".claude" / "projects" / "-shop" / f"{SESSION}.jsonl"

    def prompt(number: int, id: str, follows: str | None) -> bytes:
        return transcript_line(home, number, "user", text(f"try {id}"), uuid=id, parentUuid=follows)

    lines = prompt(10, "p1", "m8") + prompt(11, "p2", "p1") + prompt(12, "p3", "m8")
    lines += prompt(12, "p3", "m8") + prompt(13, "p4", "p3")
    # Claude Code of 2025 wrote prompts of its subagents here.
    for id in ("s1", "s2"):
        side = {"uuid": id, "parentUuid": "m7", "isSidechain": True}
        lines += transcript_line(home, 14, "user", text(id), **side)
    path.write_bytes(path.read_bytes() + lines)
    command(home, "archive", "sweep")
    shown = command(home, "transcript", SESSION, "--utc")
    assert shown.count("the conversation continues from before the prompt") == 1
    assert "the conversation continues from before the prompt: try p1\n\n" in shown


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_document_is_utf_8_in_any_locale(home: Home, tmp_path: Path) -> None:
    """A file in UTF-8 is declared or expected, and JSON is always in UTF-8."""
    name = "de_DE.ISO-8859-1"
    locale = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(tmp_path / name)]
    has_program = shutil.which("localedef")
    if not has_program or subprocess.run(locale, capture_output=True, check=False).returncode:
        pytest.skip("no localedef or no sources of locales")
    path = home.root / ".claude" / "projects" / "-shop" / f"{SESSION}.jsonl"
    said = json.loads(transcript_line(home, 10, "user", text("Größe → 漢")))
    path.write_bytes(path.read_bytes() + json.dumps(said, ensure_ascii=False).encode() + b"\n")
    command(home, "archive", "sweep")
    for words in ("transcript --html", "transcript", "archive show --lines"):
        shown = subprocess.check_output(
            [*CLI, *words.split(), SESSION],
            env={**home.env, "LC_ALL": name, "LOCPATH": str(tmp_path)},
            cwd=home.project,
        )
        assert "Größe → 漢" in shown.decode(), words


@pytest.mark.parametrize("more", [(), ("--around", "0")])
def test_html_is_one_file_without_scripts(shared: Home, more: tuple[str, ...]) -> None:
    shown = command(shared, "transcript", SESSION, "--html", *more)
    page = Page()
    page.feed(shown)
    page.close()
    assert page.open == []
    allowed = "html head meta title style body h1 h2 dl dt dd section time div pre details"
    assert {tag for tag, _ in page.tags} <= {*allowed.split(), "summary"}
    assert all(
        name in ("class", "id", "lang", "charset", "name", "content", "http-equiv")
        for _, attrs in page.tags
        for name in attrs
    )
    (policy,) = [attrs["content"] for _, attrs in page.tags if "http-equiv" in attrs]
    style = re.search(r"<style>(.*?)</style>", shown, re.DOTALL)
    assert style is not None
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'"
    assert "<script>alert(1)</script>" in page.text
    assert "\x1b" not in shown
    assert TOKEN not in shown
    assert 'class="failure"' in shown
    assert '<div class="put">+ x = 2</div>' in shown


def test_markdown_escapes_every_text(shared: Home) -> None:
    shown = command(shared, "transcript", SESSION, "--markdown", "--utc")
    headings = [each for each in shown.splitlines() if re.match(r"[> ]*#", each)]
    assert [each.split("(")[0].strip() for each in headings] == [
        "### user",
        "### claude",
        f"> ### agent Explore {AGENT}",
        "> ### claude",
        "### claude",
    ]
    assert "  ```diff\n  - x = 1\n  + x = 2\n  ```" in shown
    assert "&lt;script>" in shown
    assert "<script" not in shown
    assert TOKEN not in shown


def test_code_blocks_are_kept_in_markdown() -> None:
    from hivepipe.cli.transcript_markdown import _quoted  # noqa: PLC0415

    for code in (
        "```\n<b>\n```\n<i>",
        "```\n<b>",
        "~~~\n```\n<b>\n~~~\n<i>",
        "````\n```\n<b>\n````\n<i>",
        "- a\n  ```\n<i>",
        "``` a ` b\n<i>",
        "```\n``` x\n<b>\n```\n<i>",
    ):
        shown = "\n".join(_quoted(code))
        assert ("<b>" in shown) == ("<b>" in code), code
        assert "<i>" not in shown


def test_json_has_one_piece_per_line(shared: Home) -> None:
    shown = command(shared, "transcript", "last", "--json")
    pieces = [json.loads(each) for each in shown.split("\n")[:-1]]
    assert {piece["schema"] for piece in pieces} == {1}
    assert [(piece["kind"], piece["depth"]) for piece in pieces][-3:] == [
        ("agent", 1),
        ("claude", 1),
        ("claude", 0),
    ]
    assert pieces[2]["diff"] == ["- x = 1", "+ x = 2"]


@pytest.mark.parametrize(
    "words",
    [
        ("transcript",),
        ("session", "show"),
        ("session", "log"),
        ("tail", "--once", "--session"),
        ("agents", "--session"),
    ],
)
def test_without_an_archive_no_session_is_the_last(
    private_home: Home, words: tuple[str, ...]
) -> None:
    fire("SessionStart", {"session_id": "s-1", "source": "startup"}, private_home.env)
    command(private_home, "drain")
    output = command(private_home, *words, "last", expect=1)
    assert output.startswith("hivepipe: nothing is archived yet: `hivepipe archive sweep` ")


def test_a_session_in_its_first_turn_is_the_last(home: Home) -> None:
    named = {"session_id": "s-2", "prompt": "Begin"}
    fire("UserPromptSubmit", named, home.env)
    command(home, "drain")
    assert json.loads(command(home, "session", "show", "last", "--json"))["id"] == "s-2"
    assert SESSION in command(home, "transcript", "last")


def test_invalid_arguments_are_errors(shared: Home) -> None:
    assert "has the id zzz: see `hivepipe sessions --all`" in command(
        shared, "transcript", "zzz", expect=1
    )
    command(shared, "transcript", SESSION, "--html", "--markdown", expect=64)
    command(shared, "transcript", expect=64)
    assert AGENT in command(shared, "transcript", AGENT[:6])


def in_terminal(home: Home, tmp_path: Path, term: str) -> bytes:
    """Show a conversation; a stand-in for less records its arguments and its input."""
    pager = tmp_path / "less"
    pager.write_text(f'#!/bin/sh\nprintf "%s " "$@" > {tmp_path}/options\ncat > {tmp_path}/page\n')
    pager.chmod(0o755)
    controller, terminal = pty.openpty()
    env = home.env | {"PATH": f"{tmp_path}:{home.env['PATH']}", "TERM": term}
    process = subprocess.Popen(
        [*CLI, "transcript", SESSION], env=env, cwd=home.project, stdout=terminal, stderr=terminal
    )
    os.close(terminal)
    printed = b""
    try:
        while chunk := os.read(controller, 1000):
            printed += chunk
    except OSError as error:  # the other end is closed
        if error.errno != errno.EIO:
            raise
    os.close(controller)
    assert process.wait() == 0
    return printed


def test_in_a_terminal_less_shows_colours(shared: Home, tmp_path: Path) -> None:
    printed = in_terminal(shared, tmp_path, "xterm")
    page = (tmp_path / "page").read_text()
    assert printed == b""
    assert (tmp_path / "options").read_text().split() == ["-F", "-R", "-X", "-L"]
    assert "\x1b[31m" in page
    assert "\\x1b[2J" in page
    assert "\x1b[2J" not in page


def test_in_a_terminal_without_control_sequences_it_is_printed(
    shared: Home, tmp_path: Path
) -> None:
    printed = in_terminal(shared, tmp_path, "dumb")
    assert SESSION.encode() in printed
    assert b"\x1b" not in printed
    assert not (tmp_path / "options").exists()


def test_a_long_transcript_does_not_fill_memory(home: Home) -> None:
    before = peak_kb_of_showing(home)
    path = home.root / ".claude" / "projects" / "-shop" / f"{SESSION}.jsonl"
    block = b"".join(transcript_line(home, 10, "user", text("word " * 2000)) for _ in range(100))
    with path.open("ab") as file:
        for _ in range(20):
            file.write(block)
    assert path.stat().st_size > 20_000_000
    command(home, "archive", "sweep")
    assert peak_kb_of_showing(home) < before + 10_000


# The peak of a process is at least that of its parent, and pytest is larger than a command.
MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def peak_kb_of_showing(home: Home) -> int:
    """Show the transcript and return how much memory the process needed at most."""
    command = [sys.executable, "-c", MEASURE, *CLI, "transcript", SESSION]
    null = subprocess.DEVNULL
    return int(subprocess.check_output(command, stdin=null, env=home.env, cwd=home.project))
