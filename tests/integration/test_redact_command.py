"""`hivepipe redact` replaces secrets line by line, and its report shows no secret."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.conftest import COMMANDS, Home, untagged
from tests.outcome import outcome_of
from tests.redaction_corpus import expand

COMMAND = [sys.executable, "-I", "-m", "hivepipe.cli.main", "redact"]
TOKEN = expand("ghp_<A36>", random.Random(1))
LINES = [
    json.dumps({"a": "nothing"}),
    json.dumps({"a": f"{TOKEN} {TOKEN}"}),
    f"plain {TOKEN}",
    json.dumps({"mail": "ana@shop.io"}),
]
CLEAN = "\n".join(LINES).replace(TOKEN, "***REDACTED***").replace("ana@shop.io", "***EMAIL***")


def run(home: Home, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return COMMANDS.run(["redact", *arguments], stdin, home.env, home.project, 60)


@pytest.fixture
def transcript(private_home: Home) -> Path:
    path = private_home.root / "a.jsonl"
    path.write_text("\n".join(LINES))
    return path


def test_secrets_of_a_file_are_replaced(private_home: Home, transcript: Path) -> None:
    done = run(private_home, str(transcript))
    assert (done.returncode, untagged(done.stdout), done.stderr) == (0, CLEAN, "")


def test_secrets_in_utf_16_and_utf_32_are_replaced(private_home: Home) -> None:
    path = private_home.root / "wide.txt"
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        path.write_bytes(f"{TOKEN}\r\npassword = 'hunter2x'\r\n".encode(encoding))
        command = [*COMMAND, str(path)]
        shown = subprocess.check_output(command, env=private_home.env).replace(b"\0", b"")
        assert TOKEN[-9:].encode() not in shown, encoding
        assert b"hunter2x" not in shown, encoding


def test_a_closed_stdin_is_reported(private_home: Home) -> None:
    script = '"$@" - <&-'
    done = outcome_of(["sh", "-c", script, "sh", *COMMAND], private_home.env, private_home.project)
    assert (done.returncode, done.stderr) == (1, "hivepipe: stdin is closed\n")


def test_secrets_of_stdin_are_replaced(private_home: Home, transcript: Path) -> None:
    done = run(private_home, "-", stdin=transcript.read_text())
    assert (done.returncode, untagged(done.stdout)) == (0, CLEAN)


def test_the_report_has_rules_and_lines_but_no_secret(private_home: Home, transcript: Path) -> None:
    done = run(private_home, str(transcript), "--report")
    assert untagged(done.stdout) == CLEAN
    lines = done.stderr.splitlines()
    assert lines[0] == "3 of 4 lines changed"
    assert [line.split(maxsplit=3) for line in lines[1:]] == [
        ["github", "3", "line", "2, 3"],
        ["email", "1", "line", "4"],
    ]
    assert TOKEN not in done.stderr
    nothing = run(private_home, "-", "--report", stdin="x\n")
    assert nothing.stderr == "0 of 1 line changed\n"


def test_the_rules_of_the_home_and_of_the_user_apply(private_home: Home, transcript: Path) -> None:
    private_home.path.mkdir(parents=True)
    (private_home.path / "config.toml").write_text("[redaction]\nallow = ['ana@shop\\.io']\n")
    own = private_home.root / ".config" / "hivepipe" / "config.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[[redaction.rules]]\nname = 'n'\npattern = 'nothing'\n")
    done = run(private_home, str(transcript))
    assert untagged(done.stdout) == CLEAN.replace("***EMAIL***", "ana@shop.io").replace(
        "nothing", "***REDACTED***"
    )


def test_an_invalid_rule_is_an_error_without_output(private_home: Home, transcript: Path) -> None:
    private_home.path.mkdir(parents=True)
    config = private_home.path / "config.toml"
    config.write_text("[[redaction.rules]]\nname = 'mine'\npattern = '('\n")
    done = run(private_home, str(transcript))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"hivepipe: {config}: rule 'mine': missing ): (\n"


def test_a_missing_file_a_folder_and_wrong_usage_are_errors(private_home: Home) -> None:
    missing = run(private_home, "/nonexistent/a.jsonl")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr == "hivepipe: /nonexistent/a.jsonl: No such file or directory\n"
    folder = run(private_home, "/")
    assert (folder.returncode, folder.stderr) == (1, "hivepipe: /: Is a directory\n")
    assert run(private_home).returncode == 64


# Import everything first, because the other user may not be able to read this interpreter.
AS_NOBODY = """
import os, sys
from hivepipe.cli.main import commands, main
commands()
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    open(sys.argv[1])
except PermissionError:
    main(["redact", sys.argv[1]])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_an_unreadable_file_is_an_error(private_home: Home, transcript: Path) -> None:
    transcript.chmod(0o600)
    private_home.root.chmod(0o755)
    done = outcome_of(
        [sys.executable, "-I", "-c", AS_NOBODY, str(transcript)],
        {**private_home.env, "HIVEPIPE_HOME": "/nonexistent", "HOME": "/nonexistent"},
        "/",
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"hivepipe: {transcript}: Permission denied\n"


def test_a_closed_output_pipe_is_no_error(private_home: Home, tmp_path: Path) -> None:
    many = tmp_path / "many.jsonl"
    many.write_text((LINES[0] + "\n") * 200_000)
    command = " ".join([*COMMAND, str(many)])
    done = outcome_of(
        ["bash", "-c", f"set -o pipefail; {command} | head -1"],
        private_home.env,
        private_home.project,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == LINES[0] + "\n"


def test_lines_are_streamed_with_constant_memory(private_home: Home) -> None:
    with subprocess.Popen(
        [*COMMAND, "-"],
        env=private_home.env,
        cwd=private_home.project,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as process:
        assert process.stdin
        block = (b"plain words of a person " * 40 + b"\n") * 1_000 + f"{TOKEN}\n".encode()
        sizes = []
        for _ in range(20):  # 19 MB
            process.stdin.write(block)
            process.stdin.flush()
            sizes.append(psutil.Process(process.pid).memory_info().rss)
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    assert sizes[-1] < sizes[2] + (8 << 20)
