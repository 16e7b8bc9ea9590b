"""Commands with closed or full standard streams, and in a folder that was deleted."""

import subprocess
import sys

import pytest

from tests.conftest import Home
from tests.outcome import outcome_of

HIVEPIPE = f"{sys.executable} -I -m hivepipe.cli.main"


def run(home: Home, script: str) -> subprocess.CompletedProcess[str]:
    return outcome_of(["bash", "-c", script], home.env, home.project)


def test_a_closed_stream_is_no_error(private_home: Home) -> None:
    for command in (
        *("stacks >&-", "stacks >&- <&-", "stacks 2>&-", "stacks >&- 2>&- <&-"),
        *("--version >&-", "redact /etc/hosts >&-"),
    ):
        done = run(private_home, f"{HIVEPIPE} {command}")
        assert (done.returncode, done.stderr) == (0, ""), command


def test_a_closed_stdin_counts_as_empty(private_home: Home) -> None:
    private_home.command("init", "--no-probe")
    for command in ("uninstall --purge", "statusline", "mcp", "credentials set OPENAI_API_KEY"):
        closed = run(private_home, f"{HIVEPIPE} {command} <&-")
        empty = private_home.command(*command.split(), expect=closed.returncode)
        assert "Traceback" not in closed.stderr
        assert closed.stdout + closed.stderr == empty, command


def test_a_closed_output_pipe_is_no_error(private_home: Home) -> None:
    done = run(private_home, f"{HIVEPIPE} stacks | :")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_full_stdout_is_one_line_of_error(private_home: Home) -> None:
    for command in ("stacks", "--version", "init --help", "redact /etc/hosts"):
        done = run(private_home, f"{HIVEPIPE} {command} >/dev/full")
        assert (done.returncode, done.stderr.splitlines()[1:]) == (1, []), command
        assert "No space left on device" in done.stderr


@pytest.mark.parametrize("stderr", ["2>/dev/full", "2> >(exec <&-; sleep 1)"])
@pytest.mark.parametrize(("command", "code"), [("session show x", 1), ("no-such-command", 64)])
def test_an_unwritable_stderr_does_not_change_the_exit_code(
    private_home: Home, command: str, code: int, stderr: str
) -> None:
    assert run(private_home, f"{HIVEPIPE} {command} {stderr}").returncode == code


def test_no_file_gets_the_descriptor_of_a_closed_stream(private_home: Home) -> None:
    streams = "import hivepipe.cli.terminal as t, os, sys; t.open_missing_streams()"
    code = "; os.write(2, b'%d' % os.open('/dev/zero', 0)); sys.stdout.write('into nothing')"
    done = run(private_home, f'{sys.executable} -c "{streams}{code}" <&- >&-')
    assert (done.returncode, int(done.stderr) > 2) == (0, True)


def test_a_deleted_current_folder_is_an_error(private_home: Home) -> None:
    gone = "mkdir gone; cd gone; rmdir ../gone"
    for command in ("up -d", "off", "init", "sessions"):
        done = run(private_home, f"{gone}; {HIVEPIPE} {command}")
        assert "the current folder was deleted" in done.stderr
        assert (done.returncode, done.stdout) == (1, "")
    run(private_home, f"{gone}; {HIVEPIPE} stacks --json")
    assert "/." not in private_home.command("stacks").split()
