"""The hook executables as processes without Redis: every event ends in the spool."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hivepipe import home as homes
from tests import payloads
from tests.conftest import until
from tests.outcome import outcome_of
from tests.payloads import SESSION, changed, encoded
from tests.unit.test_jobs import TABLE

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.path.realpath(sys.executable)
NEUTRAL = b""
GUARD_SECS = 60  # only against a hanging hook
LOG_LINE = re.compile(
    r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\] \[([a-z-]+)\] \[(ERROR|WARNING|INFO)\] (.+)"
)

# jobs of each example as the first event of its session
OPERATIONS = {
    event: ["start_session", *(job for job, *_ in TABLE[event] if job != "start_session")]
    for event in payloads.EVENTS
}

Job = dict[str, Any]


def kebab(event: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"-\1", event).lower()


def executable(event: str, root: Path = ROOT) -> Path:
    return root / "hooks" / f"{kebab(event).replace('-', '_')}.py"


class Answer:
    """The exit code and the output of a hook."""

    def __init__(self, code: int, out: bytes, errors: bytes) -> None:
        self.code = code
        self.out = out
        self.errors = errors

    def must_be_neutral(self) -> None:
        assert (self.code, self.out, self.errors) == (0, NEUTRAL, b"")


def environment_of(folder: Path) -> dict[str, str]:
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder / "user"),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_RUNTIME_DIR": str(folder / "run"),
        "CLAUDE_PROJECT_DIR": str(folder / "project"),
    }


def run(command: list[Any], data: bytes, environment: dict[str, str], cwd: Path) -> Answer:
    done = outcome_of(command, environment, cwd, input=data, text=False)
    return Answer(done.returncode, done.stdout, done.stderr)


class Machine:
    """The folders and the environment of a user without Redis."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "project"
        self.home = folder / "state" / "hivepipe" / "default"
        self.spool = self.home / "spool"
        self.environment = environment_of(folder)
        self.project.mkdir()
        (folder / "user").mkdir()

    def start(self, event: str, shell: str = "", **environment: str) -> Any:
        command = [PYTHON, "-I", "-S", str(executable(event))]
        if shell:
            command = ["sh", "-c", shell, "sh", *command]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**self.environment, **environment},
            cwd=self.project,
        )

    def fire(self, event: str, data: object, shell: str = "", **environment: str) -> Answer:
        """Run one hook to its end; a dict is sent as JSON."""
        process = self.start(event, shell, **environment)
        sent = data if isinstance(data, bytes) else encoded(data)
        out, errors = process.communicate(sent, timeout=GUARD_SECS)
        return Answer(process.returncode, out, errors)

    def fire_with_open_stdin(self, event: str, data: bytes) -> Answer:
        """Run one hook whose stdin stays open."""
        process = self.start(event)
        process.stdin.write(data)
        process.stdin.flush()
        with process.stdin, process.stdout, process.stderr:
            code = process.wait(GUARD_SECS)
            return Answer(code, process.stdout.read(), process.stderr.read())

    def send(self, payload: dict[str, Any], **environment: str) -> None:
        """Fire a valid event, whose answer must be empty."""
        self.fire(payload["hook_event_name"], payload, **environment).must_be_neutral()

    def log(self) -> list[str]:
        path = self.home / "logs" / "hook-errors.log"
        return path.read_text().splitlines() if path.exists() else []

    def log_must_be_one_line_of(self, event: str) -> str:
        """Return the message of the log's only line."""
        (line,) = self.log()
        match = LOG_LINE.fullmatch(line)
        assert match, line
        assert match[1] == kebab(event)
        return match[3]

    def events(self) -> list[list[Job]]:
        """Return the jobs of every spooled event, oldest event first."""
        if not self.spool.exists():
            return []
        found = []
        for path in sorted(self.spool.iterdir()):
            assert re.fullmatch(r"\d{20}_\d+\.json", path.name)
            content = json.loads(path.read_bytes())
            assert (list(content), content["v"]) == (["v", "jobs"], 1)
            found.append(content["jobs"])
        return found

    def envelopes(self) -> list[Job]:
        return [job["envelope"] for event in self.events() for job in event]

    def operations(self) -> list[str]:
        return [envelope["operation"] for envelope in self.envelopes()]

    def forget_spool(self) -> None:
        shutil.rmtree(self.spool, ignore_errors=True)

    def files(self) -> dict[str, bytes]:
        paths = [path for path in self.folder.rglob("*") if not path.is_dir()]
        return {str(path): path.read_bytes() for path in paths}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


each_event = pytest.mark.parametrize("event", payloads.EVENTS)
# All executables run the same program, so one event is enough for most faults.


# ---- good events
@each_event
def test_an_event_is_spooled_as_its_jobs_and_answered_neutrally(
    machine: Machine, event: str
) -> None:
    machine.fire(event, payloads.EVENTS[event]).must_be_neutral()
    assert machine.operations() == OPERATIONS[event]
    assert machine.log() == []
    assert {envelope["metadata"]["session"] for envelope in machine.envelopes()} == {SESSION}
    assert {envelope["metadata"]["project"] for envelope in machine.envelopes()} == {
        str(machine.project.resolve())
    }


def test_a_complete_event_is_enough_although_stdin_stays_open(machine: Machine) -> None:
    machine.fire_with_open_stdin("Stop", encoded(payloads.STOP)).must_be_neutral()
    assert machine.operations() == OPERATIONS["Stop"]
    assert machine.log() == []


@pytest.mark.parametrize("output", ["closed", "without a reader"])
def test_an_answer_that_nobody_can_read_is_the_only_loss(machine: Machine, output: str) -> None:
    start = give_an_answer(machine)
    process = machine.start("SessionStart", 'exec "$@" >&-' if output == "closed" else "")
    process.stdout.close()
    _, errors = process.communicate(encoded(start), timeout=GUARD_SECS)
    assert (process.returncode, errors) == (0, b"")
    assert machine.operations() == OPERATIONS["SessionStart"]
    assert machine.log() == []


def give_an_answer(machine: Machine) -> dict[str, Any]:
    """Return a start of a session whose answer is not empty."""
    part = machine.home / f"context/project-{homes.short_hash(str(machine.project.resolve()))}.txt"
    part.parent.mkdir(parents=True)
    part.write_text("Notes of the user")
    start = payloads.EVENTS["SessionStart"]
    assert b"Notes of the user" in machine.fire("SessionStart", start).out
    machine.forget_spool()
    return start


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("event", ["PreToolUse", "Stop"])
def test_a_client_that_ends_its_hooks_loses_no_event(machine: Machine, event: str) -> None:
    """Claude Code sends SIGTERM to its hooks when it ends, and SIGKILL a second later."""
    data = encoded(payloads.EVENTS[event])
    process = machine.start(event)
    process.stdin.write(data[:20])
    process.stdin.flush()
    until(lambda: ignores(process.pid, signal.SIGTERM), "it does not take the event")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process.send_signal(number)
    out, errors = process.communicate(data[20:], timeout=GUARD_SECS)
    assert (process.returncode, out, errors) == (0, NEUTRAL, b"")
    assert machine.operations() == OPERATIONS[event]
    assert machine.log() == []


def ignores(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = int(re.findall(r"^SigIgn:\s+(\w+)$", status, re.MULTILINE)[0], 16)
    return bool(mask & 1 << (number - 1))


# ---- bad events: exit code 0, empty answer, one line in the log, usable fields are kept
NO_EVENTS = {
    "empty": b"",
    "blank": b" \n",
    "nul": b"\0" * 100,
    "text": b'"text"',
    "null": b"null",
    "utf-16": b"\xff\xfe{}",
    "array": encoded([payloads.STOP]),
    "unknown-name": encoded(changed(payloads.STOP, hook_event_name="FromTheFuture")),
}


@pytest.mark.parametrize(
    ("event", "data"),
    [
        *(pytest.param(event, b"this is not JSON", id=event) for event in payloads.EVENTS),
        *(pytest.param("Stop", data, id=name) for name, data in NO_EVENTS.items()),
    ],
)
def test_an_invalid_event_leaves_one_line_in_the_log(
    machine: Machine, event: str, data: bytes
) -> None:
    machine.fire(event, data).must_be_neutral()
    machine.log_must_be_one_line_of(event)
    assert machine.events() == []


def test_a_child_gives_up_a_silent_stdin_after_the_hook(machine: Machine) -> None:
    process = machine.start("Stop")
    with process.stdin, process.stdout, process.stderr:
        code = process.wait(GUARD_SECS)
        Answer(code, process.stdout.read(), process.stderr.read()).must_be_neutral()
        until(machine.log, "the child keeps waiting", 30)
    assert "stdin was not closed in time" in machine.log_must_be_one_line_of("Stop")
    assert machine.events() == []


def test_an_event_that_is_sent_after_the_hook_has_ended_is_spooled(machine: Machine) -> None:
    """A shell starts the hook, as in Claude Code, and ends with it."""
    process = machine.start("Stop", '"$@"; exit $?')
    with process.stdin, process.stdout, process.stderr:
        code = process.wait(GUARD_SECS)
        Answer(code, process.stdout.read(), process.stderr.read()).must_be_neutral()
        process.stdin.write(encoded(payloads.STOP))
        process.stdin.flush()
        until(machine.events, "the event is lost")
    assert machine.operations() == OPERATIONS["Stop"]
    machine.fire("Stop", changed(payloads.STOP, prompt_id="another")).must_be_neutral()
    instances = {envelope["metadata"]["instance"] for envelope in machine.envelopes()}
    assert (len(instances), machine.log()) == (1, [])


def test_a_closed_stdin_leaves_one_line_in_the_log(machine: Machine) -> None:
    process = machine.start("Stop", 'exec "$@" <&-')
    out, errors = process.communicate(timeout=GUARD_SECS)
    Answer(process.returncode, out, errors).must_be_neutral()
    machine.log_must_be_one_line_of("Stop")
    assert machine.events() == []


def test_no_descriptor_at_all_does_no_harm(machine: Machine) -> None:
    process = machine.start("Stop", 'exec "$@" <&- >&- 2>&-')
    assert process.communicate(timeout=GUARD_SECS) == (b"", b"")
    assert process.returncode == 0
    machine.log_must_be_one_line_of("Stop")


def test_an_event_of_50_mb_is_answered_and_its_session_is_kept(
    machine: Machine, tmp_path: Path
) -> None:
    big = tmp_path / "big.json"
    payload = changed(payloads.STOP, tomorrow="x} " * (50 * 1024 * 1024 // 3))
    big.write_bytes(encoded(payload))
    answer = machine.fire("Stop", b"", f'exec "$@" <{big}')
    big.unlink()
    answer.must_be_neutral()
    assert all(LOG_LINE.fullmatch(line) for line in machine.log())
    assert machine.operations() == OPERATIONS["Stop"]


@pytest.mark.parametrize("filler", ["}", "é"])
def test_an_event_of_50_mb_through_a_pipe_is_answered(machine: Machine, filler: str) -> None:
    data = b'{"session_id":"s1","tool_name":"Write","tool_input":{"content":"'
    data += filler.encode() * (50 * 1024 * 1024 // len(filler.encode())) + b'"}}'
    process = machine.start("PostToolUse")
    with suppress(BrokenPipeError):  # the hook had read enough
        process.stdin.write(data)
    out, errors = process.communicate(timeout=GUARD_SECS)
    Answer(process.returncode, out, errors).must_be_neutral()
    assert all(LOG_LINE.fullmatch(line) for line in machine.log())
    assert len(machine.log()) <= 1
    assert machine.operations()[:1] == ["start_session"]


def test_the_log_quotes_nothing_of_an_event(machine: Machine) -> None:
    canary = "CANARY-5f1d"
    for data in (canary.encode(), encoded([canary]), encoded({"session_id": canary + " x"})):
        machine.fire("Stop", data).must_be_neutral()
    machine.fire("Stop", encoded({"hook_event_name": canary, canary: canary})).must_be_neutral()
    machine.fire("Stop", b'{"cwd":"' + canary.encode()).must_be_neutral()
    assert len(machine.log()) == 5
    assert canary not in "".join(machine.log())


# ---- switched off
@pytest.mark.parametrize("switch", ["HIVEPIPE_DISABLED", "HIVEPIPE_NESTED"])
@pytest.mark.parametrize("data", ["event", "nonsense"])
def test_a_hook_that_is_switched_off_writes_nothing_at_all(
    machine: Machine, switch: str, data: str
) -> None:
    before = machine.files()
    sent = encoded(payloads.STOP) if data == "event" else b"nonsense"
    machine.fire("Stop", sent, **{switch: "1"}).must_be_neutral()
    assert machine.files() == before
    assert not (machine.folder / "state").exists()


def test_words_for_yes_and_no_are_read(machine: Machine) -> None:
    for word in ("true", "YES", "on"):
        machine.send(payloads.STOP, HIVEPIPE_DISABLED=word)
        assert machine.files() == {}
    for word in ("0", "false", "no", "", "off"):
        machine.send(payloads.STOP, HIVEPIPE_DISABLED=word, HIVEPIPE_NESTED=word)
    assert len(machine.events()) == 5


@pytest.mark.parametrize("data", [encoded(payloads.STOP), b"nonsense"])
def test_nothing_is_written_for_an_opted_out_project(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    register(machine, monkeypatch, home=str(machine.home), state="off")
    before = machine.files()
    machine.fire("Stop", data).must_be_neutral()
    assert machine.files() == before


@pytest.mark.parametrize("state", ["on", "down"])
def test_a_registered_project_has_its_own_home_and_log(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    machine.home = machine.project.parent / "data" / "shop"
    machine.spool = machine.home / "spool"
    register(machine, monkeypatch, home=str(machine.home), state=state)
    machine.send(payloads.STOP)
    machine.fire("Stop", b"nonsense").must_be_neutral()
    assert machine.operations() == OPERATIONS["Stop"]
    assert LOG_LINE.fullmatch((machine.home / "logs" / "hook-errors.log").read_text().strip())


def register(machine: Machine, monkeypatch: pytest.MonkeyPatch, **fields: str) -> None:
    """Write the record of the machine's project."""
    seen = {key.encode(): value.encode() for key, value in machine.environment.items()}
    monkeypatch.setattr(homes.posix, "environ", seen)
    path = Path(homes.record_path(str(machine.project.resolve())))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in fields.items()))


# ---- the spool
def test_every_event_of_an_instance_has_one_file_of_its_own(machine: Machine) -> None:
    for payload in payloads.EVENTS.values():
        machine.send(payload)
    silent = {"PreToolUse", "PostToolUseFailure"}
    assert len(machine.events()) == len(set(payloads.EVENTS) - silent)
    assert sum("start_session" in str(event) for event in machine.events()) == 1
    assert len({each["metadata"]["instance"] for each in machine.envelopes()}) == 1


@pytest.mark.parametrize("umask", ["000", "277", "777"])
def test_hooks_write_private_files_whatever_the_umask(machine: Machine, umask: str) -> None:
    for event, payload in (
        ("PostToolUse", payloads.POST_EDIT),
        ("SessionStart", payloads.SESSION_START),
        ("Stop", b"nonsense"),
    ):
        machine.fire(event, payload, f'umask {umask}; exec "$@"').must_be_neutral()
    made = list((machine.folder / "state").rglob("*"))
    assert {path.parent.name for path in made if path.is_file()} == {
        "spool",
        "instances",
        "sessions",
        "logs",
        "default",
    }
    for path in made:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_a_spool_entry_holds_what_the_writer_needs(machine: Machine) -> None:
    machine.send(payloads.STOP)
    entries = machine.events()[0]
    _, pause, *_ = entries
    assert [list(job) for job in entries] == [["twins", "queue", "description", "envelope"]] * 5
    assert [job["queue"] for job in entries] == ["high", "high", "high", "low", "low"]
    assert pause["description"] == "pause_session 7b1f0c9e"
    assert re.fullmatch(r"[0-9a-f]{32} [0-9a-f]{32}", pause["twins"])
    assert re.fullmatch(r"[0-9a-f]{32}", pause["envelope"]["id"])
    (path,) = machine.spool.iterdir()
    assert pause["envelope"]["event_time_ns"] == int(path.name.split("_")[0])


# ---- sessions and instances
def test_an_event_without_jobs_may_be_the_first_one(machine: Machine) -> None:
    machine.send(payloads.PRE_BASH)
    machine.send(payloads.STOP)
    assert machine.operations().count("start_session") == 1


def sessions_of(machine: Machine) -> dict[str, tuple[object, object]]:
    """Return operation -> session and tier for an edit and a prompt without session id."""
    machine.forget_spool()
    machine.send(changed(payloads.POST_EDIT, session_id=...), HIVEPIPE_CHECKPOINT_INTERVAL="0")
    machine.send(changed(payloads.USER_PROMPT_SUBMIT, session_id=...))
    return {
        each["operation"]: (each["metadata"]["session"], each["payload"].get("tier"))
        for each in machine.envelopes()
    }


def all_are(session: object, own: tuple[object, object]) -> dict[str, tuple[object, object]]:
    any_tier = (session, None if session else "any")
    checkpoint = dict.fromkeys(("update_checkpoint", "update_instance", "insert_log"), own)
    return {**checkpoint, "activate_session": any_tier, "record_prompt": any_tier}


def test_without_an_id_the_instance_knows_its_session(machine: Machine) -> None:
    machine.send(payloads.SESSION_START)
    (machine.home / ".active_session").write_text("another")
    assert sessions_of(machine) == all_are(SESSION, (SESSION, None))


def test_without_an_instance_the_nearest_marker_counts(machine: Machine) -> None:
    assert sessions_of(machine) == all_are(None, (None, "own"))
    for marker, session in ((".active_session", "s8"), (f"sessions/.session_{os.getpid()}", "s7")):
        shutil.rmtree(machine.home / "instances", ignore_errors=True)
        (machine.home / marker).parent.mkdir(exist_ok=True)
        (machine.home / marker).write_text(session)
        assert sessions_of(machine) == all_are(session, (None, "own"))


@pytest.mark.parametrize("variable", ["HIVEPIPE_SESSION_ID", "HIVE_SESSION_ID"])
def test_a_session_in_the_environment_replaces_that_of_the_event(
    machine: Machine, variable: str
) -> None:
    machine.send(payloads.STOP, **{variable: "shared"})
    assert machine.operations() == OPERATIONS["Stop"]
    assert {each["metadata"]["session"] for each in machine.envelopes()} == {"shared"}


# ---- projects
def test_without_a_project_folder_the_events_cwd_is_the_project(
    machine: Machine, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    machine.send(changed(payloads.STOP, cwd=str(other)), CLAUDE_PROJECT_DIR="")
    assert {each["metadata"]["project"] for each in machine.envelopes()} == {str(other.resolve())}


def test_a_project_folder_that_is_gone_does_no_harm(machine: Machine) -> None:
    machine.send(payloads.STOP, CLAUDE_PROJECT_DIR="/gone/for/ever")
    assert machine.operations() == OPERATIONS["Stop"]


# ---- installations
@pytest.mark.parametrize("broken", ["missing", "syntax"])
def test_a_broken_installation_does_not_stop_claude_code(tmp_path: Path, broken: str) -> None:
    shutil.copytree(ROOT / "hooks", tmp_path / "hooks")
    if broken == "syntax":
        (tmp_path / "hivepipe" / "hook").mkdir(parents=True)
        (tmp_path / "hivepipe" / "hook" / "run.py").write_text("def run(:\n")
    program = executable("Stop", tmp_path)
    environment = {"HOME": str(tmp_path)}
    answer = run([PYTHON, "-I", "-S", program], encoded(payloads.STOP), environment, tmp_path)
    answer.must_be_neutral()
