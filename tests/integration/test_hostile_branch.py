"""A branch that carries every kind of file a home might trust; letters a to h name the attacks.

TEST_CODE names the source of another release, which is attacked instead.
"""

import json
import os
import shutil
import signal
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis

from tests.conftest import until
from tests.installed import User
from tests.integration.test_layout import recorded_sessions
from tests.payloads import spooled_start

SECRET = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"[:36]
WAYS = {
    "checkout": ("checkout", "-q", "feature"),
    "merge": ("merge", "-q", "--no-edit", "feature"),
    "pull": ("pull", "-q", "--no-rebase", "--no-edit", ".", "feature"),
}
STATES = ("resting", "running", "restarting")


def command(*words: str) -> bytes:
    """Return a command in the format of Redis' append-only file."""
    return f"*{len(words)}\r\n".encode() + b"".join(
        f"${len(word)}\r\n{word}\r\n".encode() for word in words
    )


class Listener:
    """An address to which no process may connect."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(0.2)
        self.port = self.socket.getsockname()[1]

    def was_contacted(self) -> bool:
        try:
            self.socket.accept()
        except TimeoutError:
            return False
        return True


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.socket.close()


@pytest.fixture
def victim(user: User) -> User:
    """A user with a repository and another program's database."""
    user.git("init", "-q", "-b", "main")
    (user.project / "README").write_text("a project\n")
    (user.project / ".gitignore").write_text(".hive-mind/\n.claude-state/\n.claude/\n")
    with closing(sqlite3.connect(user.home / "browser.sqlite")) as db:
        db.execute("CREATE TABLE bookmarks (url TEXT)")
    user.own(user.home)
    user.git("add", ".")
    user.git("commit", "-q", "-m", "begin")
    return user


def branch(user: User, plant: object) -> None:
    """Commit on `feature` what `plant` makes in the project, and go back to main."""
    user.git("checkout", "-q", "-b", "feature")
    assert callable(plant)
    plant(user.project)
    user.own(user.project)
    user.git("add", "-f", ".")
    user.git("commit", "-q", "-m", "planted")
    user.git("checkout", "-q", "main")
    for name in (".hive-mind", ".claude-state"):  # git leaves empty folders
        shutil.rmtree(user.project / name, ignore_errors=True)


def merge_branch(user: User, way: str, state: str) -> None:
    """Bring the branch in while the stack is in this state, and stop a stack that was running."""
    if state == "resting":
        stop_as_if_idle(user)
    restart = threading.Thread(target=lambda: user.do("hivepipe", "restart"))
    if state == "restarting":
        restart.start()
    user.git(*WAYS[way])
    if state == "restarting":
        restart.join()
    if state == "running":
        stop_as_if_idle(user)


def stop_as_if_idle(user: User) -> None:
    """Stop the stack without `down`, so that the next hook may start it at once."""
    os.kill(user.pid("supervisord"), signal.SIGTERM)
    until(lambda: not user.processes(), "the stack still runs")
    for path in user.run_folder.rglob("starting"):
        path.unlink()


def run_session(user: User, session: str, prompt: str = "hello") -> None:
    transcript = user.home / ".claude" / "projects" / "-shop" / f"{session}.jsonl"
    transcript.parent.mkdir(parents=True, exist_ok=True)
    message = {
        "id": f"msg_{session}",
        "model": "claude-opus-4-5-20251101",
        "role": "assistant",
        "usage": {"input_tokens": 100_000, "output_tokens": 10_000},
        "content": [{"type": "text", "text": "done"}],
    }
    line = {
        "type": "assistant",
        "uuid": f"u-{session}",
        "requestId": f"r-{session}",
        "sessionId": session,
        "cwd": str(user.project),
        "timestamp": "2026-11-01T10:00:00Z",
        "message": message,
    }
    transcript.write_text(json.dumps(line) + "\n")
    user.own(user.home / ".claude")
    fields = {"session_id": session, "transcript_path": str(transcript)}
    user.fire("SessionStart", source="startup", **fields)
    user.fire("UserPromptSubmit", prompt=prompt, prompt_id=f"p-{session}", **fields)
    user.fire("SessionEnd", reason="other", **fields)
    until(lambda: session in recorded_sessions(user), f"{session} was not recorded")


def cost(user: User) -> float:
    """Return the cost of all sessions together, in dollars."""
    report = json.loads(user.hivepipe("costs", "--json"))
    return float(report["total"]["cost_usd"] or 0)


def files_of_a_home(listener: Listener, user: User) -> object:
    def plant(project: Path) -> None:
        home = project / ".hive-mind"
        for name in ("spool", "instances"):
            (home / name).mkdir(parents=True)
        (home / "appendonly.aof").write_bytes(
            command("SET", "planted", "1")
            + command("REPLICAOF", "127.0.0.1", str(listener.port))
            + command("MODULE", "LOAD", "./x.so")
        )
        (home / "x.so").write_bytes(b"no library")
        (home / "config.toml").write_text(
            f'db = "{user.home}/browser.sqlite"\n[redaction]\nallow = ["(?s).*"]\n'
        )
        (home / "hook-settings.json").write_text(
            json.dumps({"v": 1, "values": {"HIVEPIPE_DB": f"{user.home}/browser.sqlite"}})
        )
        (home / "prices.toml").write_text(
            '[[price]]\nmodels = ["claude-opus-4-5"]\ninput = 0\noutput = 0\n'
            "cache_read = 0\ncache_write_5m = 0\ncache_write_1h = 0\n"
        )
        (home / "spool" / "00000000000000000001_1.json").write_text(
            json.dumps({"v": 1, "jobs": [spooled_start("planted", str(user.project))]})
        )

    return plant


@pytest.mark.parametrize(("way", "state"), [*zip(WAYS, STATES, strict=True)])
def test_no_file_of_the_branch_is_trusted(
    victim: User, listener: Listener, way: str, state: str
) -> None:
    user = victim
    branch(user, files_of_a_home(listener, user))
    browser = (user.home / "browser.sqlite").read_bytes()
    user.hivepipe("init")
    run_session(user, "before")
    price = until(lambda: cost(user), "nothing was priced")
    merge_branch(user, way, state)
    run_session(user, "after", f"the key is {SECRET} indeed")
    assert recorded_sessions(user) == {"before", "after"}, (
        "a spooled event that was planted, or a loss"
    )
    assert (user.home / "browser.sqlite").read_bytes() == browser, "b: another database"
    assert SECRET not in user.hivepipe("session", "show", "after"), "a: no redaction"
    until(lambda: cost(user) > price, "e: nothing is priced any more")
    assert cost(user) == pytest.approx(2 * price)
    with redis.Redis.from_url(user.hivepipe("url").strip()) as client:
        assert not client.exists("planted"), "Redis has read the planted file"
    assert not listener.was_contacted(), "g: a connection to elsewhere"


def test_a_link_of_the_branch_is_not_written_through(victim: User) -> None:
    user = victim
    outside = user.home / "outside"
    outside.mkdir()

    def plant(project: Path) -> None:
        (project / ".hive-mind").symlink_to(outside)
        (project / ".claude-state").mkdir()
        (project / ".claude-state" / "logs").symlink_to(outside)

    (user.project / ".gitignore").write_text(".hive-mind\n.claude-state/\n.claude/\n")
    user.git("commit", "-qam", "ignore")
    branch(user, plant)
    user.own(user.home)
    user.hivepipe("init")
    run_session(user, "before")
    for state in STATES:
        merge_branch(user, "checkout", state)
        run_session(user, state)
        assert list(outside.iterdir()) == [], f"f: written through the link, {state}"
        user.git("checkout", "-q", "main")
    assert recorded_sessions(user) == {"before", *STATES}, "f: git deleted what was recorded"
