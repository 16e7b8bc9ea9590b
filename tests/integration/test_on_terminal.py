"""A terminal gets prose broken at spaces, and short paths; a pipe gets whole lines and paths."""

import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
from contextlib import suppress

import pytest

from tests.conftest import until
from tests.installed import AS_USER, User


def on_terminal(user: User, command: str, columns: int) -> list[str]:
    """Run a command of hivepipe on a terminal and return the lines that it printed."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [*AS_USER, user.installation.bin / "hivepipe", *shlex.split(command)],
        env=user.env | {"TERM": "xterm", "CI": "1"},
        cwd=user.project,
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    printed = b""
    with suppress(OSError):  # the other end is closed
        while chunk := os.read(controller, 1000):
            printed += chunk
    os.close(controller)
    process.wait(60)
    return printed.decode().splitlines()


@pytest.fixture
def project(user: User) -> str:
    """A registered project whose path has spaces and is longer than a line."""
    user.project = (
        user.home / "work of a year" / "the shop of one who likes a long name of a folder"
    )
    user.project.mkdir(parents=True)
    user.own(user.home)
    user.hivepipe("init")
    return str(user.project)


# Each leaves the situation of the next.
IN_ORDER = (
    *(("doctor", 80), ("what", 60), ("init", 80), ("migrate", 60), ("uninstall --user", 60)),
    *(("guard explain loop", 80), ("init --dry-run", 60), ("move-home", 60), ("costs", 60)),
    *(("up -d", 60), ("restart", 60), ("down", 80), ("status", 60), ("uninstall", 60)),
)


def test_only_a_path_is_longer_than_a_line(user: User, project: str) -> None:
    # A path may follow a label. The folder of the data is longer than a line.
    path = rf"{re.escape(project)}|{re.escape(project.replace(str(user.home), '~'))}"
    for command, columns in IN_ORDER:
        lines = on_terminal(user, command, columns)
        unbroken = [re.sub(rf"{path}|\S*/projects/\S*", "PATH", line) for line in lines]
        long = [line for line in unbroken if len(line) > columns and " " in line.strip()]
        assert (lines != [], long) == (True, []), command


def test_commands_and_given_paths_in_an_error_can_be_copied(user: User, project: str) -> None:
    user.git("init", "-q", ".")
    user.hivepipe("uninstall")
    user.hivepipe("init", "--in-tree")
    user.hivepipe("drain")
    user.git("add", "-f", ".hive-mind/hive.db")
    *_, command = on_terminal(user, "sessions", 60)
    assert command.startswith(f"  `git -C '{project}' rm -r --cached ")
    assert command.endswith(" .claude-state/logs`")
    missing = user.home / "a b c" / " ".join(20 * "d")
    shown = on_terminal(user, f"redact '{missing}'", 40)
    assert any(str(missing) in line for line in shown)


def test_a_terminal_shows_the_words_of_a_pipe(user: User, project: str) -> None:
    piped, shown = user.hivepipe("what"), on_terminal(user, "what", 80)
    assert " ".join(shown).split() == piped.split()
    assert any("`hivepipe uninstall --purge`" in line for line in shown)
    assert max(map(len, piped.splitlines())) > 80


def test_sessions_off_and_on_show_a_project_relative_to_the_home_folder(user: User) -> None:
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    user.fire("SessionStart", source="startup")
    until(user.sessions, "no session was recorded")
    assert str(user.project) in user.hivepipe("sessions", "--all"), "a table for programs"
    shown = "\n".join(on_terminal(user, "sessions", 80))
    assert "~/shop" in shown
    assert str(user.project) not in shown
    assert "in ~/shop (" in user.hivepipe("off")
    assert "record ~/shop again" in user.hivepipe("on")
    assert user.hivepipe("on").startswith("~/shop is not")
