"""The native hook and the Python hook leave the same jobs, files and answers, byte for byte.

Each event is fired through both from the same state, and the results are compared without times.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import payloads
from tests.conftest import Server, made_home, servers
from tests.native import BUILT, HookHome
from tests.payloads import changed, encoded
from tests.wheels import Wheels, program_in

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="no native hook for this machine")

GOOD = {label: (event["hook_event_name"], encoded(event)) for label, event in payloads.ALL.items()}

STOP = encoded(payloads.STOP)
EDIT = encoded(payloads.POST_EDIT)
ODD = {
    "empty": b"",
    "blank": b" \n",
    "not-json": b"this is not JSON",
    "null": b"null",
    "array": b"[" + STOP + b"]",
    "text": b'"text"',
    "utf-16": b"\xff\xfe{}",
    "bom": b"\xef\xbb\xbf" + STOP,
    "nul": b"\0" * 100,
    "truncated": STOP[: len(STOP) // 2],
    "no-last-brace": STOP[:-1],
    "two-objects": STOP + STOP,
    "behind": STOP + b" trailing",
    "bad-escape": STOP[:-1] + rb',"a":"\x","b":1}',
    "bad-number": STOP[:-1] + b',"a":-}',
    "huge-number": STOP[:-1] + b',"a":' + b"9" * 6000 + b"}",
    "invalid-utf-8": STOP[:-1] + b',"a":"\xff\xe9"}',
    "lone-surrogate": STOP[:-1] + rb',"cwd":"\ud83d"}',
    "deep": STOP[:-1] + b',"a":' + b"[" * 100_000,
    "wrong-types": encoded({**dict.fromkeys(payloads.STOP, 7), "hook_event_name": "Stop"}),
    "unknown-event": encoded(changed(payloads.STOP, hook_event_name="FromTheFuture")),
    "other-event": encoded(payloads.SESSION_END),
    "twice-a-key": STOP[:-1] + b',"session_id":"another"}',
    "no-session": encoded(changed(payloads.STOP, session_id=...)),
    "evil-session": encoded(changed(payloads.STOP, session_id="../../etc/passwd")),
    "token-session": encoded(changed(payloads.STOP, session_id="sk-ant-api03-abcdefgh")),
    "nul-in-text": encoded(changed(payloads.STOP, cwd="/a\0b")),
    "100-kB": EDIT[:-1] + b',"x":"' + b"\xe2\x82\xac" * 33_000 + b'"}',
    "above-1-MB": EDIT[:-1] + b',"x":"' + b"y" * 1_200_000 + b'"}',
}
ALL_ODD = {label: ("Stop", data) for label, data in ODD.items()}

ENVIRONMENTS: dict[str, dict[str, str]] = {
    "joined": {"HIVEPIPE_SESSION_ID": "joined-1"},
    "old-name": {"HIVE_SESSION_ID": "joined-2", "CHECKPOINT_INTERVAL": "0"},
    "exported": {"HIVEPIPE_SESSION_ID": "joined-1", "HIVEPIPE_EXPORTED": "1"},
    "instance": {"HIVEPIPE_INSTANCE_ID": "instance-of-mine"},
    "profile": {"HIVEPIPE_AGENT_ID": "ana", "HIVEPIPE_SWARM_ID": "swarm-9"},
    "task": {"HIVEPIPE_TASK_ID": "t-1"},
    "cancelled-task": {"HIVEPIPE_TASK_ID": "t-9"},
    "disk": {"HIVEPIPE_SHARED_ROOT": "/nowhere", "AGENT_ID": "ana"},
    "disabled": {"HIVEPIPE_DISABLED": "yes"},
    "nested": {"HIVEPIPE_NESTED": "TRUE"},
    "ci": {"CI": "true", "HIVEPIPE_AUTOSTART": "0"},
    "folder": {"CLAUDE_CONFIG_DIR": "/home/ana/.claude-work", "CLAUDE_CODE_REMOTE": "true"},
    "secret": {"ANTHROPIC_API_KEY": "sk-ant-api03-secret", "CLAUDE_CODE_OAUTH_TOKEN": "secret"},
    "no-project": {"CLAUDE_PROJECT_DIR": ""},
    "odd-project": {"CLAUDE_PROJECT_DIR": "/nowhere/at\udcff all"},
}
ATTEMPTS = 10
SAMPLES = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")


class Both:
    """Fires events through either hook, from the same state."""

    def __init__(
        self, hook_home: HookHome, server: Server | None, prepare: Callable[[], None]
    ) -> None:
        self.hook_home = hook_home
        self.server = server
        self.prepare = prepare

    def compare(self, events: list[tuple[str, bytes]], *words: str, **env: str) -> dict[str, bytes]:
        """Fire events through both hooks and return the traces, which must be equal."""
        answers_of_python, left = self.fired(self.hook_home.python, events, words, env)
        answers_of_native, traces_of_native = self.fired(self.hook_home.native, events, words, env)
        assert answers_of_native == answers_of_python
        assert traces_of_native.keys() == left.keys()
        for name, data in left.items():
            assert traces_of_native[name] == data, name
        return left

    def fired(
        self,
        program: Path,
        events: list[tuple[str, bytes]],
        words: tuple[str, ...],
        env: dict[str, str],
    ) -> tuple[list[bytes], dict[str, bytes]]:
        """Fire events until Redis answered all of them in time; return the answers and traces.

        A hook waits 50 ms for Redis, which is too short on a busy machine.
        """
        for _ in range(ATTEMPTS):
            self.hook_home.forget(self.server)
            self.prepare()
            answers = [self.hook_home.fire(program, *event, *words, **env) for event in events]
            if self.hook_home.raw():
                self.hook_home.convert()
            assert self.hook_home.raw() == []
            left = self.hook_home.traces(self.server)
            log = b"".join(data for name, data in left.items() if name.endswith("hook-errors.log"))
            if not (self.server and (b"Redis: " in log or b"out of time" in log)):
                break
        return answers, left


def leave_empty() -> None:
    """Leave the home empty."""


def prepared(hook_home: HookHome) -> Callable[[], None]:
    """Give the home a guard, keyword rules, a briefing, a cancelled task and memories."""

    def prepare() -> None:
        rules = [{"keywords": ["checkout", "modules"], "text": "Prices are whole cents."}]
        values = {"HIVEPIPE_GUARD": "all", "HIVEPIPE_MEMORY_RECALL": "true"}
        texts = {
            "hook-settings.json": json.dumps({"v": 1, "values": values, "context": rules}),
            "tasks/cancelled/t-9": "2026-11-21T01:00:00Z no longer wanted\n",
            "context/task-t-1.txt": "The task of this session is t-1: write\n",
            "recall/all.txt": '#0 {"id": "a", "path": "/m/cart.md", "text": "Whole cents."}\n'
            "module 0:9\nsplit 0:9\n",
        }
        for name, text in texts.items():
            path = hook_home.home.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return prepare


@pytest.fixture(scope="module", params=["redis", "spool", "away"])
def surroundings(request: pytest.FixtureRequest) -> Iterator[tuple[HookHome, Server | None]]:
    """A home with Redis, with an intake that has no Redis ("spool"), or with neither ("away").

    All tests of a kind share it, because each comparison begins with an empty home.
    """
    with made_home() as home, servers() as new_server:
        hook_home = HookHome(home, new_server)
        server = hook_home.redis() if request.param == "redis" else None
        if request.param != "away":
            hook_home.intake()
        try:
            yield hook_home, server
        finally:
            hook_home.end()


@pytest.fixture
def both(surroundings: tuple[HookHome, Server | None]) -> Iterator[Both]:
    hook_home, server = surroundings
    hook_home.forget(server)
    assert hook_home.traces(server) == {}
    yield Both(hook_home, server, leave_empty)
    assert all(intake.is_running for intake in hook_home.intakes)


@pytest.mark.parametrize("label", GOOD)
def test_both_hooks_treat_a_first_event_alike(both: Both, label: str) -> None:
    assert both.compare([GOOD[label]])


# An intake parses alike with and without Redis, and first events show how it hands them over.
both_parsers = pytest.mark.parametrize("surroundings", ["redis", "away"], indirect=True)


@both_parsers
@pytest.mark.parametrize("label", ALL_ODD)
def test_both_hooks_treat_an_invalid_event_alike(both: Both, label: str) -> None:
    assert both.compare([ALL_ODD[label]])


@both_parsers
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_both_hooks_read_the_environment_alike(both: Both, name: str) -> None:
    both.prepare = prepared(both.hook_home)
    both.compare(
        [(event, encoded(payloads.EVENTS[event])) for event in SAMPLES], **ENVIRONMENTS[name]
    )
    both.compare([GOOD["Stop"]], **ENVIRONMENTS[name])


def test_both_hooks_answer_a_failed_write_if_a_file_names_the_shared_disk(both: Both) -> None:
    """Only with a shared disk does the intake read such an event before it answers."""
    text = '{"v": 1, "values": {"HIVEPIPE_SHARED_ROOT": "/nowhere"}}'
    both.prepare = lambda: both.hook_home.home.path.joinpath("hook-settings.json").write_text(text)
    failed = encoded(changed(payloads.FAILED_AGENT, error="Read-only file system"))
    event = ("PostToolUseFailure", failed)
    both.compare([event], HIVEPIPE_AGENT_ID="ana")
    answer = both.hook_home.fire(both.hook_home.native, *event, HIVEPIPE_AGENT_ID="ana")
    assert b"/nowhere/<category>/ana/" in answer


ARM64 = shutil.which("qemu-aarch64-static") or ""


@pytest.mark.cross
@pytest.mark.skipif(not (ARM64 and find_spec("ziglang")), reason="nothing runs a hook for arm64")
def test_both_hooks_treat_events_alike_on_arm64(hook_home: HookHome, wheels: Wheels) -> None:
    program = program_in(wheels.built(TARGET="aarch64-linux-musl"))
    assert program[18:20] == b"\xb7\0"
    hook_home.native.write_bytes(program)
    hook_home.emulator = [ARM64]
    away = Both(hook_home, None, prepared(hook_home))
    events = [(event, encoded(payloads.EVENTS[event])) for event in SAMPLES]
    away.compare(events)
    server = hook_home.redis()
    hook_home.intake()
    Both(hook_home, server, prepared(hook_home)).compare(events)


@pytest.mark.parametrize("words", [("plugin",), ("plugin", "copy")])
def test_both_hooks_treat_events_of_the_plugin_alike(both: Both, words: tuple[str, ...]) -> None:
    events = ("SessionStart", "PreToolUse", "Stop")
    both.compare([(event, encoded(payloads.EVENTS[event])) for event in events], *words)


def test_both_hooks_treat_missing_arguments_alike(both: Both) -> None:
    both.compare([("", encoded(payloads.EVENTS[event])) for event in SAMPLES])


def day() -> list[tuple[str, bytes]]:
    """Events of a session with a loop of calls that the guard stops, and of a second session.

    No event is repeated: the time between two equal events decides whether they count as one.
    """
    call = payloads.ALL["PreToolUse-Bash"]
    loop = [("PreToolUse", encoded(changed(call, tool_use_id=f"toolu_{n}"))) for n in range(20)]
    later = [
        (name, data.replace(payloads.SESSION.encode(), b"another-session"))
        for name, data in GOOD.values()
    ]
    return [*GOOD.values(), *loop, *later]


@pytest.mark.parametrize("has_redis", [True, False])
def test_both_hooks_treat_a_day_of_events_alike(hook_home: HookHome, has_redis: bool) -> None:
    server = hook_home.redis() if has_redis else None
    hook_home.intake()
    env_file = str(hook_home.home.root / "env-file")
    left = Both(hook_home, server, prepared(hook_home)).compare(day(), CLAUDE_ENV_FILE=env_file)
    assert b"HIVEPIPE_SESSION_ID" in left["env-file"]


def test_both_hooks_find_the_project_of_a_worktree_and_of_a_folder_below(both: Both) -> None:
    project = both.hook_home.home.project
    below = project / "src" / "deep"
    below.mkdir(parents=True, exist_ok=True)
    linked = both.hook_home.home.root / "linked"
    unregistered = both.hook_home.home.root / "unregistered"
    inner = project / ".git" / "worktrees" / "linked"
    for folder in (linked / "src", inner, unregistered):
        folder.mkdir(parents=True)
    (linked / ".git").write_text(f"gitdir: {inner}\n")
    (inner / "gitdir").write_text(f"{linked}/.git\n")
    (unregistered / ".git").write_text(f"gitdir: {inner}\n")  # the main checkout does not list it
    try:
        for folder in (below, linked, linked / "src", unregistered):
            left = both.compare([GOOD["Stop"]], CLAUDE_PROJECT_DIR=str(folder))
            is_recorded = any(name.startswith("home/") for name in left)
            assert is_recorded == (folder != unregistered)
    finally:
        for folder in (project / ".git", linked, unregistered):
            shutil.rmtree(folder)


def test_a_raw_event_holds_no_secret_of_the_environment(hook_home: HookHome) -> None:
    hook_home.fire(hook_home.native, "Stop", STOP, **ENVIRONMENTS["secret"])
    (raw,) = hook_home.raw()
    assert b"secret" not in raw.read_bytes()
