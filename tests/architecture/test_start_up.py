"""The modules that a hook loads: a fixed list, for every event, good or bad, on every Python.

Each module costs about 1 % of a bare start, `os` alone 13 %, `json` and `re` 100 %.
"""

import json
import marshal
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import cache
from itertools import cycle
from pathlib import Path

import pytest

from hivepipe.events.claude_code import PROBE
from hivepipe.home import short_hash
from hivepipe.stack.hook_bundle import EXTENSIONS, FIRST, INDEX_BYTES, MODULES
from tests import payloads
from tests.hook_contract import checked
from tests.outcome import outcome_of
from tests.payloads import Payload, changed, encoded
from tests.rounds import ASKED_ROUNDS

ROOT = Path(__file__).resolve().parents[2]
HOOKS = sorted((ROOT / "hooks").glob("*.py"))
GUARD_SECS = 60
MODULES_AT_MOST = 14

# C modules that are built in or a single shared object
SYSTEM = {"_json", "_blake2", "_signal", "_socket", "errno", "gc", "time"}
# entries of sys.modules in place of `json`, so that the C scanner does not import it
STAND_INS = {"json", "json.decoder"}
PACKAGES = {
    "hivepipe",
    "hivepipe.events",
    "hivepipe.files",
    "hivepipe.guard",
    "hivepipe.hook",
    "hivepipe.queue",
    "hivepipe.text",
}
FEWEST = {"hivepipe", "hivepipe.events", "hivepipe.hook"}
ALWAYS = {
    "hivepipe.events.claude_code",
    "hivepipe.home",
    "hivepipe.hook.intake",
    "hivepipe.hook.run",
    "hivepipe.hook.instance",
    "hivepipe.hook.stdin",
    "hivepipe.events.job_plan",
    "hivepipe.sender",
    "hivepipe.settings",
}
COUNTING = {"hivepipe.hook.throttle"}
CONNECTING = {"hivepipe.queue.client"}
HANDING_OVER = {"hivepipe.hook.hand_over"}
SPOOLING = {"hivepipe.queue.spool"}
GUARDING = {"hivepipe.guard.client"}
JUDGING = {"hivepipe.guard.check", "hivepipe.guard.rules"}
ANSWERING = {"hivepipe.hook.answers"}
QUOTING = {"hivepipe.text.quoting", "hivepipe.text.visible"}
SPEAKING = {"hivepipe.guard.messages", "hivepipe.hook.verdict_answer"} | ANSWERING | QUOTING
ELSEWHERE = {"hivepipe.queue.endpoint"}  # when the record has the URL of a Redis
STARTING = {"hivepipe.hook.autostart"}  # when Redis does not answer
# at SessionStart, which counts nothing
TELLING = {"hivepipe.hook.waiting_notice", "hivepipe.hook.greeting"}
BY_KEYWORD = {"hivepipe.hook.keywords"}  # if the user wrote such rules
SETTING = {"hivepipe.hook.compiled_settings"}  # if a file has a setting
RECALLING = {"hivepipe.hook.recall"} | QUOTING  # if the user wants memories in prompts
PLUGGED_IN = {"hivepipe.hook.plugin"}  # as Claude Code's plugin
BESIDE = {"hivepipe.events.other_events", "hivepipe.events.notices"}
PROBING = {"hivepipe.hook.probe_event"}  # `hivepipe doctor --probe`
SHARING = {
    "hivepipe.guard.shared_disk",
    "hivepipe.guard.shell_options",
    "hivepipe.guard.shell_text",
    "hivepipe.guard.shell_variables",
    "hivepipe.guard.shell_words",
    "hivepipe.guard.shell_wrappers",
    "hivepipe.guard.shell_writes",
}
IN_TROUBLE = {"hivepipe.files.hook_log"}  # after an error that is logged
RARE = SPEAKING | BY_KEYWORD | SETTING | RECALLING | PLUGGED_IN | PROBING | SHARING | ELSEWHERE
RARE |= STARTING | IN_TROUBLE
OTHERS_IN_THE_BUNDLE = {  # for some events of other programs, agents and files, and the status line
    "hivepipe.events.hosts",
    "hivepipe.events.task_notifications",
    "hivepipe.hook.identity_snapshots",
    "hivepipe.hook.status_line",
}

NEVER = (
    "collections", "contextlib", "enum", "functools", "json.scanner", "logging", "os",
    "pathlib", "pickle", "re", "redis", "rq", "site", "socket", "sqlite3", "subprocess",
    "typing",
)  # fmt: skip

# Runs a hook as `python -I -S <hook>` does and prints the loaded modules at its end. It imports
# nothing itself.
WATCH = """
import posix, sys
path = sys.argv[1]
real_exit = posix._exit
def tell(code):
    for name, module in list(sys.modules.items()):
        kind = type(module).__name__
        line = name + " " + kind + " " + str(getattr(module, "__file__", "")) + "\\n"
        posix.write(2, line.encode())
    real_exit(code)
posix._exit = tell
with open(path, "rb") as file:
    program = compile(file.read(), path, "exec")
sys.argv = [path, *sys.argv[2:]]
exec(program, {"__name__": "__main__", "__file__": path, "__builtins__": __builtins__})
posix.write(2, b"the hook did not end the process\\n")
"""


def pythons() -> dict[str, str]:
    """Return version -> interpreter: the running one and those of pyenv."""
    found = {".".join(map(str, sys.version_info[:3])): os.path.realpath(sys.executable)}
    for version in ("3.12", "3.13"):
        for folder in sorted(Path.home().glob(f".pyenv/versions/{version}*")):
            if (folder / "bin" / "python").exists():
                found.setdefault(folder.name, os.path.realpath(folder / "bin" / "python"))
    return found


FOUND = pythons()
# The oldest and the newest. HIVEPIPE_TEST_ROUNDS selects all.
PYTHONS = {name: FOUND[name] for name in (FOUND if ASKED_ROUNDS else (min(FOUND), max(FOUND)))}
each_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)


class Installation:
    """A copy of the code; if `bundled`, with the hook program that `init` makes of it."""

    def __init__(self, python: str, folder: Path, bundled: bool) -> None:
        self.python = python
        self.folder = folder
        self.copy: Path | None = None
        plain = shutil.ignore_patterns("__pycache__")
        for name in ("hooks", "hivepipe"):
            shutil.copytree(ROOT / name, folder / name, ignore=plain)
        if bundled:
            self.make_copy(python)

    def make_copy(self, python: str) -> None:
        """Make the hook program as `init` does."""
        code = (
            f"import sys; sys.path.insert(0, {str(self.folder)!r});"
            "from hivepipe.stack import hook_copy; hook_copy.write(); print(hook_copy.launcher())"
        )
        said = subprocess.check_output(
            [python, "-I", "-c", code],
            env={"XDG_STATE_HOME": str(self.folder / "state")},
            text=True,
            timeout=GUARD_SECS,
        )
        self.copy = Path(said.strip()).parent

    def hook(self, event: str, state: Path) -> list[str]:
        """Return the command of a hook for a user with this state folder."""
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", event).lower()
        if self.copy is None:
            return [str(self.folder / "hooks" / f"{name}.py")]
        hooks = state / "hivepipe" / "hooks"
        hooks.mkdir(parents=True, exist_ok=True)
        (hooks / "x").unlink(missing_ok=True)
        (hooks / "x").symlink_to(self.copy)
        return [str(hooks / "x" / "hook.py"), name]


# Users run the bundle. The bare package takes the same way on every Python.
FORMS = {f"bundled-{version}": (python, True) for version, python in PYTHONS.items()}
FORMS["imported"] = PYTHONS[max(PYTHONS)], False


@pytest.fixture(scope="session", params=FORMS.values(), ids=FORMS)
def installation(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Installation:
    python, bundled = request.param
    return Installation(python, tmp_path_factory.mktemp("installation"), bundled)


@cache
def bare(python: str) -> frozenset[str]:
    """Return the modules of a Python that does nothing."""
    code = "import sys; print(*sys.modules)"
    command = [python, "-I", "-S", "-c", code]
    return frozenset(subprocess.check_output(command, text=True, timeout=GUARD_SECS).split())


class Loaded:
    """The modules that one run of a hook loaded in addition to those of a bare Python."""

    def __init__(
        self, where: Installation, tmp_path: Path, event: str, data: bytes, *words: str, **more: str
    ) -> None:
        (tmp_path / "project").mkdir(parents=True, exist_ok=True)
        environment = {
            "HOME": str(tmp_path),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "XDG_RUNTIME_DIR": str(tmp_path / "run"),
            "CLAUDE_PROJECT_DIR": str(tmp_path / "project"),
            **more,
        }
        hook = where.hook(event, tmp_path / "state")
        done = outcome_of(
            [where.python, "-I", "-S", "-c", WATCH, *hook, *words],
            environment,
            input=data,
            text=False,
        )
        assert done.returncode == 0, done.stderr
        self.answer = done.stdout.decode()
        may_speak = words or "HIVEPIPE_TASK_ID" in more
        assert checked(event, self.answer) == {} or may_speak, done.stderr
        self.kinds: dict[str, str] = {}
        self.files: dict[str, str] = {}
        for line in done.stderr.decode().splitlines():
            name, kind, file = line.split(" ", 2)
            self.kinds[name], self.files[name] = kind, file
        self.names = set(self.kinds) - bare(where.python)
        self.spooled = list((tmp_path / "state").glob("hivepipe/default/spool/*.json"))
        self.logged = (tmp_path / "state/hivepipe/default/logs/hook-errors.log").exists()

    def must_be_within(self, *allowed: Iterable[str]) -> None:
        whitelist = set().union(*allowed)
        assert self.names <= whitelist | SYSTEM | STAND_INS, sorted(self.names - whitelist)
        real = {name for name in STAND_INS & self.names if self.files[name]}
        assert not real, "the real json is loaded"
        assert not set(NEVER) & self.names
        ours = {name for name in self.names if name.startswith("hivepipe")} - PACKAGES
        assert len(ours - SPOOLING - RARE) <= MODULES_AT_MOST


Run = Callable[..., Loaded]


@pytest.fixture
def run(installation: Installation, tmp_path: Path) -> Run:
    """Run the hook of an event, whose bytes are `data` or those of the payload."""

    def run(payload: Payload, *words: str, data: bytes | None = None, **env: str) -> Loaded:
        sent = encoded(payload) if data is None else data
        return Loaded(installation, tmp_path, payload["hook_event_name"], sent, *words, **env)

    return run


def test_a_hook_loads_at_most_fourteen_modules() -> None:
    assert len(ALWAYS | COUNTING | GUARDING | HANDING_OVER | CONNECTING) <= MODULES_AT_MOST
    assert len(ALWAYS | GUARDING | JUDGING | HANDING_OVER | CONNECTING) <= MODULES_AT_MOST
    assert len(ALWAYS | TELLING | HANDING_OVER | CONNECTING) <= MODULES_AT_MOST


@each_python
def test_a_bare_python_loads_no_forbidden_module(python: str) -> None:
    assert not set(NEVER) & bare(python)


# modules for each example, as the first event of its session and as a later one
COUNTED = ("Stop", "StopFailure", "SessionEnd", "PostToolUse-Edit", "PostToolUse-Write")
ASKING = ("PermissionRequest", "PermissionDenied", "Notification", "PostToolBatch")
GUARDED = ("PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", *ASKING)


def needed(label: str) -> set[str]:
    counted = label.startswith((*COUNTED, "PostToolUse-Agent"))
    guarded = label.startswith(GUARDED)
    found = (COUNTING if counted else set()) | (GUARDING if guarded else set())
    found |= JUDGING if label.startswith("PreToolUse") else set()
    found |= BESIDE if label in (*ASKING, "PostModelSwitch") else set()
    return found | (TELLING if label.startswith("SessionStart") else set())


@pytest.mark.parametrize("label", payloads.ALL)
def test_an_event_that_is_handed_over_loads_only_the_hook_path(run: Run, label: str) -> None:
    loaded = run(payloads.ALL[label])
    loaded.must_be_within(PACKAGES, ALWAYS, HANDING_OVER, SPOOLING, needed(label))
    assert len(loaded.spooled) == 1
    assert loaded.names >= ALWAYS | HANDING_OVER | SPOOLING | needed(label)


@pytest.mark.parametrize("label", ["PreToolUse-Bash", "UserPromptSubmit"])
def test_a_hook_that_answers_also_loads_the_modules_for_its_answer(
    run: Run, tmp_path: Path, label: str
) -> None:
    cancelled = tmp_path / "state" / "hivepipe" / "default" / "tasks" / "cancelled"
    cancelled.mkdir(parents=True)
    (cancelled / "t-1").write_text("2026-11-21T01:00:00Z\n")
    loaded = run(payloads.ALL[label], HIVEPIPE_TASK_ID="t-1")
    usual = (ALWAYS, HANDING_OVER, SPOOLING, GUARDING, JUDGING)
    loaded.must_be_within(PACKAGES, *usual, SPEAKING, CONNECTING)
    assert loaded.names >= SPEAKING
    assert "t-1" in loaded.answer


def test_a_start_with_a_task_in_its_briefing_loads_two_modules_more(
    run: Run, tmp_path: Path
) -> None:
    home = tmp_path / "state" / "hivepipe" / "default"
    (home / "context").mkdir(parents=True)
    (home / "context" / "task-t-1.txt").write_text("The task of this session is t-1: write\n")
    loaded = run(payloads.SESSION_START, HIVEPIPE_TASK_ID="t-1")
    usual = (ALWAYS, HANDING_OVER, SPOOLING, TELLING)
    loaded.must_be_within(PACKAGES, *usual, GUARDING, ANSWERING)
    assert "t-1: write" in loaded.answer


@pytest.mark.parametrize("label", ["SessionStart", "PreToolUse-Bash", "PostToolUse-Edit", "Stop"])
def test_a_hook_of_the_plugin_loads_one_module_more(run: Run, label: str) -> None:
    loaded = run(payloads.ALL[label], "plugin", "copy")
    usual = (ALWAYS, HANDING_OVER, SPOOLING, needed(label))
    speaks = ANSWERING if label == "SessionStart" else set()
    loaded.must_be_within(PACKAGES, *usual, speaks, PLUGGED_IN)
    assert loaded.names >= PLUGGED_IN | speaks


@pytest.mark.parametrize("label", ["SessionStart", "PreToolUse-Bash", "Stop"])
def test_the_event_of_a_probe_loads_one_module_more_and_leaves_no_marker(
    run: Run, tmp_path: Path, label: str
) -> None:
    loaded = run(changed(payloads.ALL[label], session_id=f"{PROBE}{'0a' * 16}"))
    loaded.must_be_within(PACKAGES, ALWAYS, HANDING_OVER, SPOOLING, PROBING)
    (spooled,) = loaded.spooled
    (job,) = json.loads(spooled.read_text())["jobs"]
    assert (job["envelope"]["operation"], job["envelope"]["id"]) == ("probe", "0a" * 16)
    home = tmp_path / "state" / "hivepipe" / "default"
    assert [path.name for path in home.iterdir()] == ["spool"]


def test_a_prompt_with_a_keyword_loads_two_modules_more(run: Run, tmp_path: Path) -> None:
    home = tmp_path / "state" / "hivepipe" / "default"
    home.mkdir(parents=True)
    rules = [{"keywords": ["modules"], "text": "t-1"}]
    (home / "hook-settings.json").write_text(json.dumps({"v": 1, "values": {}, "context": rules}))
    loaded = run(payloads.USER_PROMPT_SUBMIT, HIVEPIPE_TASK_ID="t-1")
    usual = (ALWAYS, HANDING_OVER, SPOOLING, GUARDING, JUDGING)
    loaded.must_be_within(PACKAGES, *usual, BY_KEYWORD, SETTING, ANSWERING)
    assert "t-1" in loaded.answer


def test_a_prompt_that_brings_memories_loads_two_modules_more(run: Run, tmp_path: Path) -> None:
    ready = tmp_path / "state" / "hivepipe" / "default" / "recall"
    ready.mkdir(parents=True)
    memory = json.dumps({"id": "a", "path": "/m/cart.md", "text": "Prices are whole cents."})
    (ready / "all.txt").write_text(f"#0 {memory}\nmodule 0:9\nsplit 0:9\n")
    wanted = {"v": 1, "values": {"HIVEPIPE_MEMORY_RECALL": "true"}}
    (ready.parent / "hook-settings.json").write_text(json.dumps(wanted))
    loaded = run(payloads.USER_PROMPT_SUBMIT, HIVEPIPE_TASK_ID="t-1")
    usual = (ALWAYS, HANDING_OVER, SPOOLING, GUARDING, JUDGING, SETTING)
    loaded.must_be_within(PACKAGES, *usual, RECALLING, ANSWERING)
    assert "whole cents" in loaded.answer


@pytest.mark.parametrize("label", ["PreToolUse-Bash", "PreToolUse-Write", "PostToolUse-Bash"])
def test_a_profile_with_a_shared_disk_loads_its_rule(run: Run, label: str) -> None:
    profile = {"HIVEPIPE_SHARED_ROOT": "/nowhere", "HIVEPIPE_AGENT_ID": "ana"}
    loaded = run(payloads.ALL[label], **profile)
    usual = (ALWAYS, HANDING_OVER, SPOOLING, GUARDING, JUDGING)
    loaded.must_be_within(PACKAGES, *usual, SHARING)
    assert loaded.names >= SHARING


@pytest.mark.parametrize("label", ["SessionStart", "PostToolUse-Edit", "Stop"])
def test_an_event_with_odd_characters_loads_no_codec(run: Run, label: str) -> None:
    payload = changed(payloads.ALL[label], cwd="/é\u20ac\U0001f600", note="\ud83d")
    loaded = run(payload, data=json.dumps(payload).encode() + b"\n")
    loaded.must_be_within(PACKAGES, ALWAYS, HANDING_OVER, SPOOLING, needed(label))
    assert len(loaded.spooled) == 1


SILENT = [
    "PreToolUse-Bash",
    "PreToolUse-Edit",
    "PostToolUse-Bash",
    "PostToolUseFailure",
]


@pytest.mark.parametrize("label", SILENT)
def test_an_event_without_a_job_loads_neither_client_nor_throttle(run: Run, label: str) -> None:
    loaded = run(changed(payloads.ALL[label], session_id=...))  # there is no session to start
    loaded.must_be_within(FEWEST, ALWAYS)
    assert not loaded.logged


@pytest.mark.parametrize("event", ["SessionStart", "PreToolUse", "Stop"])
def test_a_hook_that_is_switched_off_loads_no_more(run: Run, event: str) -> None:
    loaded = run(payloads.EVENTS[event], HIVEPIPE_DISABLED="1")
    loaded.must_be_within(FEWEST, ALWAYS)


BAD = {
    "not-json": lambda data: b"this is not JSON",
    "array": lambda data: b"[" + data + b"]",
    "truncated": lambda data: data[: len(data) // 2],
    "no-last-brace": lambda data: data[:-1],
    "bad-escape": lambda data: data[:-1] + rb',"a":"\x","b":1}',
    "bad-number": lambda data: data[:-1] + b',"a":-}',
    "bad-word": lambda data: data[:-1] + b',"a":nul}',
    "no-comma": lambda data: data[:-1] + b' "a":1}',
    "huge-number": lambda data: data[:-1] + b',"a":' + b"9" * 6000 + b"}",
    "invalid-utf-8": lambda data: data[:-1] + b',"a":"\xff\xe9"}',
    "nul": lambda data: b"\0" * 50,
    "deep": lambda data: data[:-1] + b',"a":' + b"[" * 100_000,
    "wrong-types": lambda data: encoded(
        {**dict.fromkeys(json.loads(data), 7), "hook_event_name": "Stop"}
    ),
    "unknown-event": lambda data: encoded({"hook_event_name": "FromTheFuture"}),
}


# Each fault with one event, because the JSON reader is the same for all events.
FAULTY = list(zip(BAD, cycle(["UserPromptSubmit", "PostToolUse", "SessionEnd"]), strict=False))


@pytest.mark.parametrize(("fault", "event"), FAULTY)
def test_a_bad_event_loads_nothing_but_the_log_beside_the_hook_path(
    run: Run, event: str, fault: str
) -> None:
    payload = payloads.EVENTS[event]
    loaded = run(payload, data=BAD[fault](encoded(payload)))
    usual = (ALWAYS, HANDING_OVER, SPOOLING, COUNTING, GUARDING)
    loaded.must_be_within(PACKAGES, *usual, IN_TROUBLE, {"hivepipe.events.other_events"})
    assert loaded.logged


@pytest.mark.parametrize("event", ["SessionStart", "PreToolUse", "Stop"])
def test_an_empty_stdin_loads_nothing_but_the_log_beside_the_hook_path(
    run: Run, event: str
) -> None:
    loaded = run(payloads.EVENTS[event], data=b"")
    loaded.must_be_within(FEWEST, ALWAYS, {"hivepipe.files"}, IN_TROUBLE)
    assert loaded.logged


@pytest.mark.parametrize("remote", [False, True], ids=["own", "remote"])
def test_a_hook_that_starts_the_stack_loads_one_module_more(
    run: Run, tmp_path: Path, remote: bool
) -> None:
    project = tmp_path.resolve() / "project"
    records = tmp_path / "state" / "hivepipe" / "projects"
    records.mkdir(parents=True)
    lines = [
        f"home={project}/.hive-mind",
        "socket=redis://192.0.2.1" if remote else f"socket={tmp_path}/run/x/redis.sock",
        f"runtime={tmp_path}/run/x",
        "python=/bin/true",
    ]
    (records / short_hash(str(project))).write_text("\n".join(lines) + "\n")
    (tmp_path / "run").mkdir(mode=0o700)
    loaded = run(payloads.STOP)
    usual = (ALWAYS, HANDING_OVER, SPOOLING, COUNTING, GUARDING)
    more = STARTING | (ELSEWHERE if remote else set())
    loaded.must_be_within(PACKAGES, *usual, more)
    assert loaded.names >= more
    assert (tmp_path / "run" / "x" / "starting").exists()


def test_the_watch_program_agrees_with_importtime(
    installation: Installation, tmp_path: Path
) -> None:
    """The watch program runs a hook in an unusual way, so it is compared with `-X importtime`."""
    data = encoded(payloads.POST_EDIT)
    watched = Loaded(installation, tmp_path, "PostToolUse", data).names
    (tmp_path / "other").mkdir()
    hook = installation.hook("PostToolUse", tmp_path / "other" / "state")
    done = outcome_of(
        [installation.python, "-I", "-S", "-X", "importtime", *hook],
        {
            "HOME": str(tmp_path / "other"),
            "XDG_STATE_HOME": str(tmp_path / "other" / "state"),
            "XDG_RUNTIME_DIR": str(tmp_path / "other" / "run"),
            "CLAUDE_PROJECT_DIR": str(tmp_path / "other"),
        },
        input=data,
        check=True,
        text=False,
    )
    lines = [line.rsplit("|", 1)[-1].strip() for line in done.stderr.decode().splitlines()[1:]]
    # The bundle does not import its modules, but executes them.
    executed = {*MODULES, *EXTENSIONS} if installation.copy else set()
    assert set(lines) - bare(installation.python) == watched - STAND_INS - executed


def test_the_bundle_executes_what_every_event_loads() -> None:
    assert set(FIRST) == FEWEST | ALWAYS


def test_the_bundle_has_each_module_of_the_hook_path_and_no_other() -> None:
    usual = ALWAYS | COUNTING | CONNECTING | HANDING_OVER | SPOOLING | GUARDING | JUDGING | TELLING
    assert set(MODULES) == PACKAGES | usual | BESIDE | RARE | OTHERS_IN_THE_BUNDLE


# ---- with a damaged bundle, or that of another Python, hooks work as before

DAMAGE = {
    "empty": b"",
    "garbage": b"\xff\0 nonsense",
    "none": marshal.dumps(None),
    "nothing-inside": marshal.dumps(()),
    "another-shape": marshal.dumps({"a": 1}),
    "no-code": marshal.dumps((1, 2, 3)),
    "wrong-code": marshal.dumps((b"", b"", "nonsense", {}, "", ())),
    "no-modules": marshal.dumps((b"", b"", "pass", {}, "", ())),
}


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[Installation, bytes]:
    folder = tmp_path_factory.mktemp("damaged")
    where = Installation(os.path.realpath(sys.executable), folder, bundled=True)
    return where, bundle_of(where).read_bytes()


def bundle_of(where: Installation) -> Path:
    assert where.copy
    return where.copy / "hook_path"


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_bundle_loses_no_event(
    sound: tuple[Installation, bytes], tmp_path: Path, damage: str
) -> None:
    where, _ = sound
    bundle_of(where).write_bytes(DAMAGE[damage])
    assert len(Loaded(where, tmp_path, "Stop", encoded(payloads.STOP)).spooled) == 1


@pytest.mark.parametrize("cut", [1, 10, 1000])
def test_a_truncated_bundle_loses_no_event(
    sound: tuple[Installation, bytes], tmp_path: Path, cut: int
) -> None:
    where, bundle = sound
    bundle_of(where).write_bytes(bundle[:cut])
    assert len(Loaded(where, tmp_path, "Stop", encoded(payloads.STOP)).spooled) == 1


def test_a_python_with_another_bytecode_reads_the_texts_in_the_bundle(
    sound: tuple[Installation, bytes], tmp_path: Path
) -> None:
    where, bundle = sound
    bundle_of(where).write_bytes(bundle)
    code = encoded(payloads.STOP)
    real = Loaded(where, tmp_path / "real", "Stop", code)
    index = list(marshal.loads(bundle))
    head = marshal.dumps((b"another", b"never loaded", *index[2:]), 2)
    bundle_of(where).write_bytes(head.ljust(INDEX_BYTES, b"\0") + bundle[INDEX_BYTES:])
    (where.folder / "hivepipe").rename(where.folder / "away")  # nothing can come from the package
    try:
        found = Loaded(where, tmp_path / "other", "Stop", code)
    finally:
        (where.folder / "away").rename(where.folder / "hivepipe")
    assert len(found.spooled) == 1
    assert found.names == real.names


def test_a_bundled_hook_works_without_the_package(
    sound: tuple[Installation, bytes], tmp_path: Path
) -> None:
    where, bundle = sound
    bundle_of(where).write_bytes(bundle)
    (where.folder / "hivepipe").rename(where.folder / "away")
    try:
        for label, payload in payloads.ALL.items():
            event = payload["hook_event_name"]
            loaded = Loaded(where, tmp_path / label, event, encoded(payload))
            assert len(loaded.spooled) == 1, label
    finally:
        (where.folder / "away").rename(where.folder / "hivepipe")


@pytest.mark.parametrize(("event", "code"), [("Stop", 1), ("PreToolUse", 0)])
def test_without_bundle_and_package_a_hook_says_once_a_turn_that_nothing_is_recorded(
    sound: tuple[Installation, bytes], tmp_path: Path, event: str, code: int
) -> None:
    """Copilot CLI denies a call whose hook exits with 1."""
    where, _ = sound
    bundle_of(where).unlink(missing_ok=True)  # the other case may have run before
    (where.folder / "hivepipe").rename(where.folder / "away")
    try:
        done = outcome_of(
            where.hook(event, tmp_path / "state"),
            input=encoded({**payloads.STOP, "hook_event_name": event}),
            text=False,
        )
    finally:
        (where.folder / "away").rename(where.folder / "hivepipe")
    assert (done.returncode, done.stdout) == (code, b"")  # 2 would block Claude's action
    assert len(done.stderr.splitlines()) == code
    assert (b"hivepipe records nothing" in done.stderr) == bool(code)
    assert (b"hivepipe init" in done.stderr) == bool(code)


# ---- the executables
def test_all_executables_differ_by_the_name_of_their_event_only() -> None:
    texts = set()
    for path in HOOKS:
        event = "".join(word.capitalize() for word in path.stem.split("_"))
        text = path.read_text()
        assert f'run("{event}")' in text
        texts.add(re.sub(rf"\b{event}\b", "<event>", text))
    assert len(texts) == 1
