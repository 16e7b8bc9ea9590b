"""The environment of a test with the real client: a user, a fake API, hivepipe and its stack."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.conftest import until
from tests.real import tally
from tests.real.messages_api import MessagesApi
from tests.real.names import merged, of_request
from tests.real.person import Person
from tests.real.recorder import Recorder
from tests.real.script import Script

CLAUDE = os.environ.get("TEST_CLAUDE", "")
KEPT = os.environ.get("TEST_KEEP", "")  # Environments of failed tests are copied to this folder.
SETTLED_SECS = 60
HOOK = re.compile(r"/hooks/(\w+/)*(\w+\.py|hook)\b")
needs_claude = pytest.mark.skipif(not CLAUDE, reason="no Claude Code was fetched: `make real`")


@contextmanager
def client_environment(
    *scripts: Script, init: tuple[str, ...] = ("--local",), is_recorded: bool = bool(CLAUDE)
) -> Iterator[Person]:
    """Yield a user whose client plays the scripts; `init` has the options of `hivepipe init`.

    `person.api.requests` has the requests served. With `is_recorded` additional hooks store every
    payload. An empty `init` leaves hivepipe uninstalled. At the end the stack is stopped and all
    files are removed.
    """
    root = Path(tempfile.mkdtemp(prefix="real-", dir="/tmp")).resolve()
    try:
        with MessagesApi({script.name: script for script in scripts}).serving() as api:
            person = Person(root, Path(CLAUDE), api)
            recorder = Recorder(root, person.home, person.claude) if is_recorded else None
            if init:
                person.hivepipe("init", "--no-probe", *init)
            try:
                yield person
            except BaseException:
                copy_failed(root)
                raise
            finally:
                person.hivepipe("down", expect=None)
                add_to_tally(person, recorder)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def copy_failed(root: Path) -> None:
    """Copy the environment of a failed test to TEST_KEEP, if it is set."""
    if KEPT:
        Path(KEPT).mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", str(root), KEPT], check=False)


def add_to_tally(person: Person, recorder: Recorder | None) -> None:
    """Add the client's payloads, transcript names and offered tools to the tally of the test."""
    if not CLAUDE:
        return
    offered = merged(of_request(request.body) for request in person.api.requests)
    payloads = recorder.payloads() if recorder else []
    tally.current.add(len(payloads), merged([offered, recorder.names() if recorder else {}]))


def version() -> tuple[int, ...]:
    """Return the client's version as numbers: (2, 1, 330)."""
    said = subprocess.run([CLAUDE, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.findall(r"\d+", said)[:3]))


def settle(person: Person, secs: float = SETTLED_SECS) -> None:
    """Wait until every event is stored and every transcript is archived."""

    def is_settled() -> bool:
        status = person.json("status", expect=None)
        accounts = status["accounts"] or {"done": 0}
        if not accounts["done"] or status["spool"]:
            return False
        return not any(accounts[name] for name in ("waiting", "running", "retrying"))

    # The client does not wait for all hooks before it ends.
    until(lambda: not hooks_at_work(person), "a hook does not end", secs)
    until(is_settled, "the stack did not settle", secs)


def hooks_at_work(person: Person) -> list[int]:
    """Return the pids of the user's running hooks."""
    home = f"\0HOME={person.home}\0"
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            if home in f"\0{(folder / 'environ').read_text(errors='replace')}" and HOOK.search(
                (folder / "cmdline").read_text(errors="replace")
            ):
                found.append(int(folder.name))
    return found
