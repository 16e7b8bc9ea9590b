"""Run the client on a terminal in tmux: type, read the screen, and end it by its pid."""

import os
import re
import shlex
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from tests.conftest import until
from tests.outcome import outcome_of
from tests.real.person import Person

COLUMNS, LINES = 120, 50
SHOWN_SECS = 60
AT_MOST_SECS = 300  # The client is ended after this time, even if the test hangs.
HAS_TMUX = shutil.which("tmux") is not None
READY, BUSY = ("? for shortcuts", "shift+tab to cycle"), "esc to interrupt"
MANUAL = ("--permission-mode", "default")  # Newer clients ask a model for permissions by default.


@contextmanager
def on_terminal(
    person: Person, *options: str, ready: tuple[str, ...] = READY
) -> Iterator["Terminal"]:
    """Run the client on a terminal while the context lasts; wait until it accepts a prompt.

    The screen shows one of the texts `ready` when the client waits for a prompt.
    """
    terminal = Terminal(person, options, ready)
    with terminal.opened():
        terminal.shows(*ready)
        yield terminal


@dataclass
class Terminal:
    """A tmux session in which the client runs."""

    person: Person
    options: tuple[str, ...] = ()
    ready: tuple[str, ...] = READY

    def __post_init__(self) -> None:
        """Choose a tmux server socket for this terminal alone."""
        self.socket = self.person.root / f"tmux-{uuid4().hex[:8]}"

    @contextmanager
    def opened(self) -> Iterator["Terminal"]:
        """Run the client while the context lasts, without waiting for its first screen."""
        words = [str(self.person.claude), *MANUAL, *self.options]
        bounded = shlex.join(["timeout", "--foreground", "-k", "5", str(AT_MOST_SECS), *words])
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES),
                   f"exec {bounded}")  # fmt: skip
        self._tmux("set-option", "-w", "remain-on-exit", "on")
        try:
            yield self
        finally:
            self._close()

    def say(self, prompt: str) -> None:
        """Type a prompt or a slash command, and send it."""
        self.type(prompt)
        self.press("Enter")

    def type(self, text: str) -> None:
        """Type a text and wait until its end is on the screen."""
        self._tmux("send-keys", "-l", text)
        self.shows(text[-20:])

    def press(self, *keys: str) -> None:
        """Press keys by tmux's names: Enter, Escape, C-c, Down."""
        self._tmux("send-keys", *keys)

    def choose(self, choice: str) -> None:
        """Press the number of a choice in a dialog: `2. No`, not `2. No, never`."""
        wanted = re.compile(rf"(\d)\. {re.escape(choice)}\b(?!,)")
        self.press(*until(lambda: wanted.findall(self.screen), f"{choice} is not to be chosen"))

    def press_until_gone(self, text: str, *keys: str) -> None:
        """Press keys until a text is gone, because a form that is redrawn misses some."""

        def is_gone() -> bool:
            for key in keys:
                self.press(key)
                time.sleep(1)
            return text not in self.screen

        until(is_gone, f"{text} stays on the screen")

    @property
    def screen(self) -> str:
        """The text on the screen, without trailing blanks."""
        return self._tmux("capture-pane", "-p", "-J")

    def shows(self, *texts: str, secs: float = SHOWN_SECS) -> str:
        """Wait until one of the texts is on the screen, and return it."""
        seen = ""

        def shown() -> str:
            nonlocal seen
            seen = self.screen
            return next((text for text in texts if text in seen), "")

        try:
            return str(until(shown, f"none of {texts} is on the screen", secs))
        except BaseException as error:
            error.add_note(seen)
            raise

    def wait_for_end_of_turn(self) -> None:
        """Wait until the turn and its hooks are over."""

        def is_over() -> bool:
            seen = self.screen
            return BUSY not in seen and any(text in seen for text in self.ready)

        until(is_over, "the turn never ends")

    @property
    def pid(self) -> int:
        """The pid of the client, or 0 after its end."""
        bound = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        try:
            children = Path(f"/proc/{bound}/task/{bound}/children").read_text().split()
        except OSError:
            return 0
        return int(children[0]) if children else 0

    @property
    def is_over(self) -> bool:
        return self._tmux("display-message", "-p", "#{pane_dead}").strip() == "1"

    def end(self, number: int = signal.SIGTERM) -> None:
        os.kill(self.pid, number)
        self.wait()

    def wait(self, secs: float = SHOWN_SECS) -> None:
        until(lambda: self.is_over, "the client did not end", secs)

    def _close(self) -> None:
        if pid := self.pid:
            os.kill(pid, signal.SIGKILL)
        self._tmux("kill-server", expect=None)

    def _tmux(self, *words: str, expect: int | None = 0) -> str:
        done = outcome_of(
            ["tmux", "-S", str(self.socket), *words],
            {**self.person.env, "TERM": "xterm-256color", "SHELL": "/bin/sh"},
            self.person.project,
        )
        assert expect in (None, done.returncode), (words, done.stderr)
        return done.stdout
