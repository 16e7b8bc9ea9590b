"""Transcripts archived by real hooks, a real writer and a real slow worker."""

import json
import os
import random
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.archive_scene import SESSION, TOKEN, line, lines
from tests.conftest import Home, Process, Server, Writer, fire, fire_all, untagged, until
from tests.installed import UID, User
from tests.payloads import (
    SESSION_END,
    SESSION_START,
    STOP,
    SUBAGENT_STOP,
    USER_PROMPT_SUBMIT,
    changed,
)
from tests.rounds import rounds

TURNS = rounds(40)
# allowed I/O to store the usage of one turn
STORE_READ_BYTES, STORE_WRITTEN_BYTES = 130_000, 65_000
IDLE_READ_BYTES = 25_000  # a second: heartbeat, settings, locks
WORDS = ("alpha", "def f(x):", "return 1", "git commit", "the answer is", "naïve", "{}", "2026")


class Scene:
    """One user's Claude folder, and the processes that archive from it."""

    def __init__(self, home: Home, server: Server, writer: Writer, slow: Process) -> None:
        self.home = home
        self.command = home.command
        self.server = server
        self.writer = writer
        self.slow = slow
        self.transcripts = home.root / ".claude" / "projects" / "-shop"
        self.transcripts.mkdir(parents=True)
        self.env = home.with_env(INSTANCE_ID="inst-a")

    def start(self) -> None:
        self.writer.start()
        self.slow.start()

    def path(self, session: str = SESSION) -> Path:
        return self.transcripts / f"{session}.jsonl"

    def stop(self, session: str = SESSION, **more: Any) -> None:
        payload = changed(STOP, session_id=session, transcript_path=str(self.path(session)), **more)
        fire("Stop", payload, self.env)

    @property
    def kept(self) -> Path:
        return self.home.kept

    def archived(self, session: str = SESSION) -> bytes:
        found = list(self.kept.rglob(f"*_{session}.jsonl"))
        return found[0].read_bytes() if found else b""

    def meta(self, session: str = SESSION) -> dict[str, Any]:
        (found,) = self.kept.rglob(f"*_{session}.meta.json")
        report: dict[str, Any] = json.loads(found.read_bytes())
        return report

    def index(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.kept / "archive-index.json").read_bytes())
        return report["archives"]  # type: ignore[no-any-return]

    def is_idle(self) -> bool:
        """Tell whether neither worker has a job left and the spool is empty.

        The queue llm is ignored: no summaries are made here.
        """
        if not (self.writer.is_running and self.slow.is_running):
            pytest.fail(f"ended: {self.writer.text[-2000:]} {self.slow.text[-2000:]}")
        with self.server.client() as client:
            counts = client.pipeline()
            for queue in ("high", "medium", "low", "slow"):
                counts.llen(f"rq:queue:{queue}")
                counts.zcard(f"rq:wip:{queue}")
                counts.zcard(f"rq:scheduled:{queue}")
            return not any(counts.execute()) and not self.home.spool

    def settle(self) -> None:
        until(self.is_idle, "work is left")

    def dead(self) -> int:
        with self.server.client() as client:
            return int(client.zcard("rq:failed:slow")) + int(client.zcard("rq:failed:low"))

    def log(self) -> str:
        path = self.home.logs / "hook-errors.log"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def scene(private_home: Home, redis_server: Server, writer: Writer, slow_worker: Process) -> Scene:
    return Scene(private_home, redis_server, writer, slow_worker)


# ---- what a turn costs
def turn(number: int, size: int, rng: random.Random) -> bytes:
    """Return what one turn adds to a transcript: messages of very different lengths."""
    added, length = [], 0
    while length < size:
        words = " ".join(rng.choice(WORDS) for _ in range(rng.randrange(5, 900)))
        name = f"{number}-{len(added)}"
        message = {"id": f"msg-{name}", "role": "assistant", "model": "claude-opus-4-5-20251101",
                   "content": [{"type": "text", "text": words}],
                   "usage": {"input_tokens": 3, "output_tokens": 5}}  # fmt: skip
        more = {"uuid": f"uuid-{name}", "requestId": f"req-{name}", "message": message}
        added.append(line(number, **more))
        length += len(added[-1])
    return b"".join(added)


def io_of(pid: int) -> dict[str, int]:
    """Return the I/O counters of a process; rchar and wchar count bytes of system calls."""
    found = (row.split(": ") for row in Path(f"/proc/{pid}/io").read_text().splitlines())
    return {name: int(value) for name, value in found}


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs /proc")
def test_turns_read_and_write_each_byte_once(scene: Scene) -> None:
    """Each byte is read and written once; 20 % and a fixed amount for the database come on top."""
    scene.start()
    fire("SessionStart", SESSION_START, scene.env)
    scene.settle()
    rng = random.Random(5)

    def take(number: int) -> int:
        with scene.path().open("ab") as transcript:
            transcript.write(turn(number, 50_000, rng))
        scene.stop(prompt_id=f"p-{number}")
        size = scene.path().stat().st_size
        until(lambda: len(scene.archived()) == size, "not archived")
        return size

    first = take(TURNS)  # after this the worker has read its own files
    scene.settle()
    before, began = io_of(scene.slow.pid), time.monotonic()
    for number in range(TURNS):
        take(number)
    scene.settle()
    after, secs = io_of(scene.slow.pid), time.monotonic() - began
    spent = {name: after[name] - before[name] for name in after}
    size = scene.path().stat().st_size - first
    print(f"{TURNS} turns, {size} bytes: {spent}")
    assert scene.archived() == scene.path().read_bytes()
    idle = secs * IDLE_READ_BYTES
    assert spent["rchar"] <= 1.2 * size + TURNS * STORE_READ_BYTES + idle
    assert spent["wchar"] <= 1.2 * size + TURNS * STORE_WRITTEN_BYTES
    assert scene.meta()["message_count"] == len(scene.archived().splitlines())


# ---- many at once
def test_ten_stops_of_many_sessions_at_once(scene: Scene) -> None:
    sessions = [f"session-{number:02d}" for number in range(20 if rounds(0) else 8)]
    for session in sessions:
        scene.path(session).write_bytes(line(200, session, sessionId=session))
    scene.start()

    def stop_once(number: int) -> None:
        session = sessions[number % len(sessions)]
        # appends whole lines, as Claude Code does
        with scene.path(session).open("ab") as transcript:
            transcript.write(line(number, f"{session} {TOKEN if number == 7 else ''}"))
        scene.stop(session, prompt_id=f"p-{number}")

    with ThreadPoolExecutor(40) as pool:
        list(pool.map(stop_once, range(10 * len(sessions))))
    scene.settle()
    assert len(list(scene.kept.glob("main-session/*/*.jsonl"))) == len(sessions)
    assert set(scene.index()) == set(sessions)
    for session in sessions:
        wanted = scene.path(session).read_text().replace(TOKEN, "***REDACTED***")
        assert untagged(scene.archived(session).decode()) == wanted
        assert scene.meta(session)["message_count"] == 11
    assert scene.dead() == 0
    assert "0 with problems" in scene.command("archive", "verify")
    assert "the index was correct" in scene.command("archive", "rebuild-index")
    usage = scene.home.rows("SELECT message_id FROM usage")
    assert len(usage) == 10 * len(sessions) + 1  # all sessions begin with the same message


def test_many_processes_archive_one_session(scene: Scene) -> None:
    """With the queue switched off, many hooks archive the same session at once."""
    hooks = 40 if rounds(0) else 10
    scene.server.end()
    env = {**scene.env, "HIVEPIPE_USE_QUEUE": "false"}
    scene.path().write_bytes(lines(3))

    def stop_once(number: int) -> None:
        with scene.path().open("ab") as transcript:
            transcript.write(line(10 + number))
        payload = changed(STOP, transcript_path=str(scene.path()), prompt_id=f"p-{number}")
        fire("Stop", payload, env)

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(stop_once, range(hooks)))
    scene.command("drain")
    scene.command("archive", "sweep")
    assert scene.archived() == scene.path().read_bytes()
    assert scene.meta()["message_count"] == 3 + hooks
    assert len(scene.index()) == 1


# ---- large
def test_a_large_transcript_takes_little_memory(scene: Scene) -> None:
    """60 MB, or 500 MB with HIVEPIPE_TEST_ROUNDS; the worker is terminated once and continues."""
    rng = random.Random(3)
    some = turn(0, 1_000_000, rng)
    with scene.path().open("wb") as transcript:
        for _ in range(500 if rounds(0) else 60):
            transcript.write(some)
    size = scene.path().stat().st_size
    scene.start()
    scene.stop()
    until(lambda: len(list(scene.kept.rglob("*.jsonl"))), "not begun")
    kept = next(scene.kept.rglob("*.jsonl"))
    until(lambda: kept.stat().st_size > size / 10, "does not grow")
    assert scene.slow.end(signal.SIGTERM) == 0
    committed = kept.stat().st_size
    assert 0 < committed < size
    scene.slow.start()
    peak = 0
    while kept.stat().st_size < size:
        status = Path(f"/proc/{scene.slow.pid}/status").read_text()
        peak = max(peak, int(status.split("VmHWM:")[1].split()[0]))
        assert scene.slow.is_running
    scene.settle()
    print(f"{size >> 20} MB, stopped at {committed >> 20} MB; peak {peak >> 10} MB")
    assert peak < 200_000
    assert subprocess.run(["cmp", kept, scene.path()], check=False).returncode == 0


# ---- subagents, ends, and what is refused
@pytest.mark.parametrize("has_stopped", [True, False])
def test_a_subagent_and_the_end_of_a_session(scene: Scene, has_stopped: bool) -> None:
    """An agent that was killed with its session has no SubagentStop."""
    scene.path().write_bytes(lines(2))
    agent = scene.transcripts / SESSION / "subagents" / "agent-a41c09be77d2f0e13.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(lines(3, 70))
    scene.start()
    both = {"transcript_path": str(scene.path())}
    stopped = changed(SUBAGENT_STOP, agent_transcript_path=str(agent), **both)
    fire_all([*[stopped] * has_stopped, changed(SESSION_END, **both)], scene.env)
    scene.settle()
    assert scene.archived() == lines(2)
    (kept,) = scene.kept.rglob("*_a41c09be77d2f0e13.jsonl")
    assert kept.read_bytes() == lines(3, 70)
    if has_stopped:
        assert kept.is_relative_to(scene.kept / "subagent" / "Explore" / "2026-01")
        meta = json.loads(kept.with_suffix("").with_suffix(".meta.json").read_bytes())
        assert (meta["parent_session_id"], meta["outcome"]) == (SESSION, "success")
        assert scene.meta()["tokens"]["output"] == 1 + 2 + 71 + 72 + 73


def test_hostile_paths_write_nothing_outside(scene: Scene) -> None:
    scene.start()
    root = scene.home.root
    (root / "outside.jsonl").write_bytes(lines(1))
    (scene.transcripts / "link.jsonl").symlink_to(root / "outside.jsonl")
    own = scene.transcripts / SESSION / "subagents" / "agent-a0.jsonl"
    own.parent.mkdir(parents=True)
    own.write_bytes(lines(1))
    before = outside(scene)
    refused = (
        f"{root}/outside.jsonl",
        f"{root}/.claude/projects/-shop/../../../outside.jsonl",
        "/etc/passwd",
        f"{root}/.claude/projects/-shop/link.jsonl",
    )
    for number, path in enumerate(refused):
        ids = {"session_id": "../../up", "agent_id": f"a{number + 1}", "agent_type": "Explore"}
        fire("SubagentStop", changed(SUBAGENT_STOP, agent_transcript_path=path, **ids), scene.env)
    evil = {"agent_id": "a0", "agent_type": "../../../../evil", "agent_transcript_path": str(own)}
    fire("SubagentStop", changed(SUBAGENT_STOP, **evil), scene.env)
    scene.settle()
    assert outside(scene) == before
    assert scene.log().count("[archive-transcript] [WARNING] transcript refused") == len(refused)
    (kept,) = scene.kept.rglob("*.jsonl")
    assert kept.parent.parent.name == "..%2F..%2F..%2F..%2Fevil"
    assert scene.dead() == 0


def outside(scene: Scene) -> set[Path]:
    """Return every file outside the project that does not belong to the stack."""
    found = {path for path in scene.home.root.rglob("*") if scene.home.project not in path.parents}
    ours = {"run", "state", "home", "slowhome.log", "writerhome.log"}
    return {path for path in found if not ours & {*path.parts}}


def test_a_missing_transcript_is_a_warning_if_the_session_has_an_archive(scene: Scene) -> None:
    """With `--no-session-persistence` Claude Code writes none, and reports its path."""
    scene.start()
    named = {"session_id": SESSION, "transcript_path": str(scene.path())}
    fire("UserPromptSubmit", changed(USER_PROMPT_SUBMIT, **named), scene.env)
    scene.stop()
    agent = {**named, "agent_transcript_path": str(scene.path(f"{SESSION}/subagents/agent-a0"))}
    fire("SubagentStop", changed(SUBAGENT_STOP, **agent), scene.env)
    fire("SessionEnd", changed(SESSION_END, **named), scene.env)
    scene.settle()
    assert "transcript not found" not in scene.log()
    scene.path().write_bytes(lines(2))
    scene.stop()
    until(lambda: scene.archived() == lines(2), "nothing is archived")
    scene.settle()
    scene.path().unlink()
    scene.stop(prompt_id="another")
    scene.settle()
    assert scene.log().count("[WARNING] transcript not found (session ") == 1
    assert scene.dead() == 0


def test_a_missing_folder_of_claude_code_is_a_warning(scene: Scene, tmp_path: Path) -> None:
    """As in a container of the stack that does not share the folder: nothing is ever archived."""
    scene.start()
    folder = tmp_path / "unshared"
    named = {"session_id": SESSION, "transcript_path": f"{folder}/projects/-a/{SESSION}.jsonl"}
    env = scene.env | {"CLAUDE_CONFIG_DIR": str(folder)}
    fire_all([changed(event, **named) for event in (SESSION_START, SESSION_END)], env)
    scene.settle()
    assert "[WARNING] transcript not found (session " in scene.log()


def test_a_transcript_that_moved_with_its_session_is_archived_without_a_warning(
    scene: Scene,
) -> None:
    """Claude Code 2.1.332 moves it when it removes the worktree; a job may name the old path."""
    scene.start()
    scene.path().write_bytes(lines(2))
    fire("UserPromptSubmit", changed(USER_PROMPT_SUBMIT, session_id=SESSION), scene.env)
    scene.stop()
    until(lambda: scene.archived() == lines(2), "nothing is archived")  # a second job follows
    moved = scene.transcripts.with_name("-main") / scene.path().name
    moved.parent.mkdir()
    scene.path().rename(moved)
    end = changed(SESSION_END, session_id=SESSION, transcript_path=str(moved))
    fire("SessionEnd", end, scene.env)
    scene.settle()
    assert scene.archived() == moved.read_bytes()
    assert "transcript not found" not in scene.log()


def test_an_unreadable_transcript_waits_until_it_can_be_read(user: User) -> None:
    user.hivepipe("init")
    path = user.home / ".claude" / "projects" / "-shop" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(2))
    user.own(user.home)
    path.chmod(0)
    assert user.do("cat", path).returncode != 0
    stop = {"session_id": SESSION, "transcript_path": str(path)}
    for handler in user.hooks()["Stop"]:
        payload = {**stop, "cwd": str(user.project), "hook_event_name": "Stop"}
        user.do(
            handler["command"],
            *handler["args"],
            data=json.dumps(payload),
            HIVEPIPE_USE_QUEUE="false",
        )
    assert "Permission denied" in user.hivepipe("drain", expect=1)
    path.chmod(0o600)
    user.hivepipe("drain")
    (kept,) = (user.recorded / "archive").rglob("*.jsonl")
    assert kept.read_bytes() == lines(2)
    assert (kept.stat().st_mode & 0o777, kept.stat().st_uid) == (0o600, UID)


# ---- found by the sweep
def register(user: Home, folder: Path, **fields: str) -> None:
    path = user.record_of(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in fields.items()))


class Projects:
    """The home's project, its worktree, a neighbour, one switched off, and one unregistered."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        root = scene.home.root
        self.own = scene.home.project
        self.neighbour, self.off, self.loose = root / "bank", root / "private", root / "loose"
        for folder in (self.neighbour, self.off, self.loose):
            folder.mkdir()
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(self.own)]
        for words in (
            ["init", "-q"],
            ["commit", "-q", "--allow-empty", "-m", "x"],
            ["worktree", "add", "-q", str(root / "tree")],
        ):
            subprocess.run([*git, *words], check=True, capture_output=True)
        self.tree = root / "tree"
        register(scene.home, self.own, home=str(scene.home.path), state="on")
        register(scene.home, self.neighbour, home=f"{self.neighbour}/.hive-mind", state="on")
        register(scene.home, self.off, home=str(scene.home.path), state="off")

    def write(self, session: str, cwd: Path, claude: Path | None = None) -> Path:
        claude = claude or self.scene.home.root / ".claude"
        folder = claude / "projects" / str(cwd).replace("/", "-")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{session}.jsonl"
        path.write_bytes(b'{"type":"mode"}\n' + line(0, session, cwd=str(cwd), sessionId=session))
        return path


def test_a_sweep_takes_only_what_belongs_to_this_project(scene: Scene) -> None:
    projects = Projects(scene)
    for name in ("own", "tree", "neighbour", "off", "loose"):
        projects.write(name, getattr(projects, name))
    projects.write("deeper", projects.own / "src" / "gone")
    projects.write("no-cwd", projects.own).write_bytes(lines(1).replace(b'"cwd"', b'"cwD"'))
    agent = projects.write("own", projects.own).with_suffix("") / "subagents" / "agent-b7.jsonl"
    agent.parent.mkdir(parents=True)
    agent.write_bytes(line(3, cwd=str(projects.own)))
    agent.with_suffix("").with_suffix(".meta.json").write_text('{"agentType": "Explore"}')
    before = scene.home.root / ".claude"
    stamp = {path: path.stat().st_mtime_ns for path in before.rglob("*")}
    output = scene.command("archive", "sweep")
    assert output.startswith("4 transcripts archived (7 new lines), 0 unchanged, 4 of other")
    assert set(scene.index()) == {"own", "own/b7", "tree", "deeper"}
    assert scene.index()["own/b7"]["agent_type"] == "Explore"
    assert scene.command("archive", "sweep").startswith(
        "0 transcripts archived (0 new lines), 4 unchanged"
    )
    assert {path: path.stat().st_mtime_ns for path in before.rglob("*")} == stamp
    assert len(scene.home.rows("SELECT 1 FROM usage")) > 0


def test_a_followed_folder_is_swept_and_an_opted_out_one_never(scene: Scene) -> None:
    projects = Projects(scene)
    projects.write("loose", projects.loose)
    projects.write("off", projects.off)
    assert scene.command("archive", "follow") == "none\n"
    for folder in (projects.loose, projects.off):
        scene.command("archive", "follow", str(folder))
    assert scene.command("archive", "follow").split() == [str(projects.loose), str(projects.off)]
    scene.command("archive", "follow", str(projects.neighbour), expect=1)
    scene.command("archive", "sweep")
    assert set(scene.index()) == {"loose"}
    scene.command("archive", "follow", "--stop", str(projects.loose))
    projects.write("later", projects.loose)
    scene.command("archive", "sweep")
    assert set(scene.index()) == {"loose"}


def test_a_copy_of_a_resumed_session_takes_none_of_its_messages(scene: Scene) -> None:
    """Claude Code 1 copied all lines under a new id; this id sorts before the original's."""
    projects = Projects(scene)
    original = projects.write("b-original", projects.own)
    copy = projects.write("a-copy", projects.own)
    for path, count in ((original, 3), (copy, 5)):
        more = {"cwd": str(projects.own), "sessionId": path.stem}
        path.write_bytes(b"".join(line(n, "x", **more) for n in range(count)))
    os.utime(original, ns=(10**18, copy.stat().st_mtime_ns - 10**9))
    scene.command("archive", "sweep")
    costs = json.loads(scene.command("costs", "--by", "session", "--json"))["costs"]
    assert {each["session"]: each["messages"] for each in costs} == {"b-original": 3, "a-copy": 2}


def test_the_sweep_also_reads_a_claude_folder_that_a_hook_named(scene: Scene) -> None:
    projects = Projects(scene)
    work = scene.home.root / "work"
    path = projects.write("first", projects.own, work)
    scene.start()
    payload = changed(STOP, session_id="first", transcript_path=str(path))
    fire("Stop", payload, {**scene.env, "CLAUDE_CONFIG_DIR": str(work)})
    scene.settle()
    assert set(scene.index()) == {"first"}
    projects.write("second", projects.own, work)
    scene.command("archive", "sweep")
    assert set(scene.index()) == {"first", "second"}


# ---- the commands
def test_the_commands_show_the_archives(scene: Scene) -> None:
    assert scene.command("archive", "verify").endswith("0 archives, 0 with problems\n")
    assert json.loads(scene.command("archive", "list", "--json")) == {"schema": 1, "archives": []}
    projects = Projects(scene)
    projects.write("a1b2c3", projects.own).write_bytes(
        line(0, f"use {TOKEN}", cwd=str(projects.own)) + line(1)
    )
    scene.command("archive", "sweep")
    listed = json.loads(scene.command("archive", "list", "--json"))["archives"]
    assert [(each["session_id"], each["meta"]["message_count"]) for each in listed] == [
        ("a1b2c3", 2)
    ]
    assert "a1b2c3" in scene.command("archive", "list", "--utc")
    output = scene.command("archive", "show", "a1b", "--utc")
    assert "message_count    2" in output
    assert "output tokens    3" in output
    shown = scene.command("archive", "show", "a1b2c3", "--lines")
    assert shown.splitlines()[0].count("***REDACTED:api-key:") == 1
    assert json.loads(scene.command("archive", "show", "a1", "--json"))["session_id"] == "a1b2c3"
    assert "no archive" in scene.command("archive", "show", "zz", expect=1)
    (kept,) = scene.kept.rglob("*.jsonl")
    kept.write_bytes(kept.read_bytes().replace(b"answer", b"Answer"))
    assert "its lines were changed" in scene.command("archive", "verify", expect=1)
    (scene.kept / "archive-index.json").unlink()
    assert "was rebuilt" in scene.command("archive", "rebuild-index")
    assert set(scene.index()) == {"a1b2c3"}
    audit = (scene.kept / "security-audit.log").read_text()
    assert "Redacted 1 API key from session a1b2c3" in audit
    assert "Created archive with permissions 0600" in audit
