"""Secrets over several lines of a file are removed, wherever a window ends."""

import base64
import io
import json
import random
import subprocess
import textwrap
from collections.abc import Callable

import pytest

from hivepipe.redact import windows
from hivepipe.redact.edit import Edit
from hivepipe.redact.redactor import Redactor
from tests.redaction_corpus import CODE_AND_PROSE, expand

PEM = expand("<b64>\n" * 24 + "<b30>==\n", random.Random(1))
KEY = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM}-----END RSA PRIVATE KEY-----\n"
NETRC = "machine shop.internal\n  login ana\n  password correcthorse7\n"
YAML = "db:\n  password:\n    hunter2x\n  port: 5432\n"
# Texts with the first or last line of a key would turn their neighbours into a key.
FILLER = [text for text in CODE_AND_PROSE if "-----" not in text]
SECRETS = {
    "a key": (KEY, "***SSH_KEY***\n"),
    "the end of a key": ("\n".join(KEY.splitlines()[-5:]) + "\n", "***SSH_KEY***\n"),
    "netrc": (NETRC, NETRC.replace("correcthorse7", "***REDACTED***")),
    "YAML": (YAML, YAML.replace("hunter2x", "***REDACTED***")),
}


def redacted(text: str) -> str:
    pieces = Redactor().redact_stream(io.BytesIO(text.encode()))
    return b"".join(line for line, _ in pieces).decode()


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_over_several_lines_is_removed(kind: str) -> None:
    """It is also removed from a tool's result in a transcript."""
    secret, clean = SECRETS[kind]
    assert redacted(f"# before\n\n{secret}\n# after\n") == f"# before\n\n{clean}\n# after\n"
    line = json.dumps({"content": [{"type": "tool_result", "content": f"$ x\n{secret}\n$ "}]})
    (shown,) = json.loads(redacted(line))["content"]
    assert shown["content"] == f"$ x\n{clean}\n$ "


@pytest.fixture(scope="module", params=["rsa", "ecdsa", "ed25519"])
def key_of_openssh(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("ssh") / "key"
    words = ["ssh-keygen", "-q", "-t", request.param, "-N", "", "-f", str(made)]
    subprocess.run(words, check=True)
    return made.read_text()


VIEWS: dict[str, Callable[[str], str]] = {
    "whole": str,
    "tail": lambda text: "\n".join(text.splitlines()[-4:]) + "\n",
    "wrapped": lambda text: base64.encodebytes(text.encode()).decode(),
    "indented": lambda text: textwrap.indent(text, "    "),
    "numbered": lambda text: "".join(
        f"{n:>6}\t{line}\n" for n, line in enumerate(text.splitlines(), 1)
    ),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("view", VIEWS)
def test_keys_of_openssh_are_removed_in_every_view(key_of_openssh: str, view: str) -> None:
    shown = VIEWS[view](key_of_openssh)
    clean = redacted(f"key:\n{shown}done\n")
    assert not any(
        line[at : at + 8] in clean
        for line in shown.split()
        if len(line) > 8 and "-----" not in line
        for at in range(len(line) - 7)
    )
    assert clean.startswith("key:\n")


@pytest.mark.parametrize("seed", range(6))
def test_secrets_are_removed_wherever_a_window_ends(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(windows, "WINDOW_BYTES", chance.randrange(9_000, 12_000))
    monkeypatch.setattr(windows, "MARGIN_BYTES", 4_000)
    monkeypatch.setattr(windows, "CONTEXT_BYTES", 500)
    text, expected = [], []
    for _ in range(60):
        filler = "".join(f"{chance.choice(FILLER)}\n" for _ in range(chance.randrange(40)))
        secret, clean = chance.choice(list(SECRETS.values()))
        text += [filler, "\n", secret, "\n"]
        expected += [filler, "\n", clean, "\n"]
    assert redacted("".join(text)) == "".join(expected)


def test_a_text_without_secrets_keeps_every_byte() -> None:
    text = "\r\n".join(CODE_AND_PROSE * 60).encode() + b"\xff\x00 no end of line"
    pieces = list(Redactor().redact_stream(io.BytesIO(text)))
    assert b"".join(line for line, _ in pieces) == text
    assert len(pieces) == text.count(b"\n") + 1
    assert not any(rules for _, rules in pieces)


def test_a_line_longer_than_a_window_is_read_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WINDOW_BYTES", 4_000)
    monkeypatch.setattr(windows, "MARGIN_BYTES", 1_000)
    tokens = [expand("ghp_<A36>", random.Random(n)) for n in range(400)]
    assert redacted(" x ".join(tokens)) == " x ".join(["***REDACTED***"] * 400)


CUTS = [  # text, (start, end) of its edits, bytes of context, offset of the cut
    ("aaaa bb\nccc dd eeee", [], 0, 8),
    ("aaaa bbcccddd eeee", [], 0, 14),
    ("aaaa bbcccdddd eee", [], 0, 5),
    ("aaaabbcccddeeee", [], 0, 11),
    ("aa\naa bbbccddeeee", [], 3, 6),
    ("aa\n aabbbccddeeee", [], 4, 13),
    ("\naaaaaaaaeeee", [], 0, 1),
    ("aaaaaa bbbbbbbeeee", [], 6, 7),
    ("aaaa bb\nccc dd eeee", [(2, 8), (8, 12)], 0, 8),
    ("aaaa bb\nccc dd eeee", [(2, 4), (5, 9)], 0, 5),
    ("aaaa bb\nccc dd eeee", [(5, 9)], 4, 5),
    ("aaaa bb\nccc dd eeee", [(5, 9)], 5, 9),
    ("aaaa bb\nccc dd eeee", [(5, 9)], 6, 9),
]


@pytest.mark.parametrize(("text", "edits", "context", "cut"), CUTS)
def test_a_window_is_cut_behind_a_line_and_never_inside_a_secret(
    monkeypatch: pytest.MonkeyPatch, text: str, edits: list[tuple[int, int]], context: int, cut: int
) -> None:
    monkeypatch.setattr(windows, "MARGIN_BYTES", 4)
    found = [Edit(start, end, b"*", "x") for start, end in edits]
    assert windows._last_cut(text.encode(), found, context) == cut


def test_records_of_json_stay_lines_and_json() -> None:
    record = json.dumps({"key": KEY})
    text = f"{record}\nnot JSON\n{record}\n"
    clean = redacted(text).splitlines()
    assert [json.loads(clean[0]), clean[1], json.loads(clean[2])] == [
        {"key": "***SSH_KEY***\n"},
        "not JSON",
        {"key": "***SSH_KEY***\n"},
    ]


def test_json_over_many_lines_stays_json() -> None:
    value = {"name": "shop", "auth": {"password": "hunter2", "pem": KEY.splitlines()}}
    assert json.loads(redacted(json.dumps(value, indent=2)))["auth"]["password"] == "***REDACTED***"
