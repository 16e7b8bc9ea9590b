"""Kills of the intake and of native hooks at every step: no event is lost or doubled."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import payloads
from tests.conftest import ROOT, Home, Process, Server, Writer, until
from tests.faults.harness import random_of
from tests.native import BUILT, Setting, jobs_of, may_trace
from tests.payloads import changed, encoded
from tests.rounds import ASKED_ROUNDS

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="no native hook for this machine")

QUEUES = ("high", "medium", "low")
PROMPT = encoded(payloads.EVENTS["UserPromptSubmit"])
STEPS_AT_MOST = 400
STRIDE = 1 if ASKED_ROUNDS else 5  # distance between two tested steps of an event
LAUNCHER = Path(__file__).with_name("launch_intake.py")


@pytest.fixture
def setting(private_home: Home, new_server: Callable[[Home], Server]) -> Iterator[Setting]:
    made = Setting(private_home, new_server)
    yield made
    made.end()


def skill_use(number: int) -> bytes:
    """Return an event that becomes one row."""
    skill = {"skill": f"acme:note-{number}"}
    called = payloads.EVENTS["PostToolUse"]
    return encoded(changed(called, tool_use_id=f"toolu_{number:06d}", tool_input=skill))


def prompt(number: int) -> bytes:
    return encoded(changed(payloads.EVENTS["UserPromptSubmit"], prompt=f"{ASKS_FOR} {number}"))


def call(number: int) -> bytes:
    named = {"tool_use_id": f"toolu_{number:06d}", "tool_input": {"command": f"ls {number}"}}
    return encoded(changed(payloads.PRE_BASH, **named))


# Kinds of events by the time of their answer: before any work, before the jobs are pushed, and
# after that.
KINDS: dict[str, tuple[Callable[[int], bytes], str]] = {
    "PostToolUse": (skill_use, "SELECT count(*) AS n FROM v_skill_uses"),
    "UserPromptSubmit": (prompt, "SELECT count(*) AS n FROM v_prompts"),
    "PreToolUse": (call, "SELECT total(calls) AS n FROM activity"),
}
ASKS_FOR = "quetzal"
RULES = {"v": 1, "values": {}, "context": [{"keywords": [ASKS_FOR], "text": "Whole cents."}]}


def send(setting: Setting, number: int) -> None:
    setting.fire(setting.native, "PostToolUse", skill_use(number))


def apply_all(setting: Setting, server: Server, writer: Writer, secs: float = 60) -> None:
    """Let the writer apply all jobs in Redis and in the spool."""
    if not writer.is_running:
        writer.start()
    until(lambda: not setting.raw() and not setting.home.spool, "the spool stays", secs)
    keys = [f"rq:{kind}:{queue}" for kind in ("wip", "scheduled") for queue in QUEUES]
    client = server.client()
    until(lambda: not (jobs_of(server) or any(map(client.zcard, keys))), "jobs wait", secs)


def uses(setting: Setting) -> int:
    return len(setting.home.rows("SELECT * FROM v_skill_uses"))


def launch(setting: Setting, at: int, version: str = "") -> Process:
    """Start an intake that is killed at a step; `version` is the only one that it knows."""
    command = [sys.executable, "-I", "-S", str(LAUNCHER), str(ROOT), str(at), version]
    env = {**setting.env, "HIVEPIPE_HOME": str(setting.home.path)}
    made = Process(command, setting.home.root / "intake.log", env, setting.home.root)
    setting.intakes.append(made)
    (setting.runtime / "intake.sock").unlink(missing_ok=True)
    made.start()
    until((setting.runtime / "intake.sock").exists, "the intake does not listen")
    return made


def lives_on(intake: Process) -> bool:
    """Return whether the intake survived; its sockets close a moment before it ends."""
    end = time.monotonic() + 1
    while intake.is_running and time.monotonic() < end:
        time.sleep(0.002)
    return intake.is_running


@pytest.mark.parametrize("has_redis", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_an_intake_killed_at_any_step_loses_and_doubles_no_event(
    setting: Setting, new_writer: Callable[[Home], Writer], kind: str, has_redis: bool
) -> None:
    server = setting.redis() if has_redis else None
    (setting.home.path / "hook-settings.json").write_text(json.dumps(RULES))
    event, counted = KINDS[kind]
    sent, answers = 0, []
    for at in range(1, STEPS_AT_MOST, STRIDE):
        intake = launch(setting, at)
        answers.append(setting.fire(setting.native, kind, event(sent := sent + 1)))
        if lives_on(intake):
            break
    else:
        pytest.fail("it is still killed")
    assert sent > 10
    assert_answered(kind, answers)
    apply_all(setting, server or setting.redis(), new_writer(setting.home))
    until(lambda: setting.home.rows(counted)[0]["n"] >= sent, "an event is lost")
    assert setting.home.rows(counted)[0]["n"] == sent


def assert_answered(kind: str, answers: list[bytes]) -> None:
    """A prompt is answered completely or not at all, and before most of the work."""
    said = {answer for answer in answers if answer}
    assert len(said) == (kind == "UserPromptSubmit")
    if said:
        assert b"Whole cents." in said.pop()
        assert len([answer for answer in answers if answer]) > 3


def test_hooks_killed_at_any_time_double_no_event(
    setting: Setting, new_writer: Callable[[Home], Writer]
) -> None:
    server = setting.redis()
    setting.intake()
    chosen = random_of("native hooks")
    whole = 0
    for number in range(200 if ASKED_ROUNDS else 60):
        process = setting.start(setting.native, "PostToolUse")
        assert process.stdin
        process.stdin.write(skill_use(number))
        process.stdin.close()
        time.sleep(chosen.random() * 0.003)
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            assert stream
            stream.close()
        whole += process.returncode == 0
    apply_all(setting, server, new_writer(setting.home))
    applied = setting.home.rows("SELECT * FROM v_skill_uses")
    assert len({row["skill"] for row in applied}) == len(applied)
    assert whole <= len(applied) <= 200


def disturb_during_events(
    setting: Setting, new_writer: Callable[[Home], Writer], disturb: Callable[[Process], None]
) -> None:
    """Replace the intake repeatedly while 32 clients send events; every event is stored once."""
    server = setting.redis()
    events = 640 if ASKED_ROUNDS else 160
    is_over = threading.Event()

    def disturb_repeatedly() -> None:
        while not is_over.is_set():
            intake = setting.intake()
            disturb(intake)
            intake.end(signal.SIGKILL)

    disturbing = threading.Thread(target=disturb_repeatedly)
    disturbing.start()
    try:
        with ThreadPoolExecutor(32) as pool:
            list(pool.map(lambda number: send(setting, number), range(events)))
    finally:
        is_over.set()
        disturbing.join()
    apply_all(setting, server, new_writer(setting.home))
    assert uses(setting) == events


def test_an_intake_that_is_killed_again_and_again_loses_nothing_of_32_clients(
    setting: Setting, new_writer: Callable[[Home], Writer]
) -> None:
    chosen = random_of("strikes")
    disturb_during_events(setting, new_writer, lambda _: time.sleep(chosen.random() * 0.3))


def test_an_intake_that_is_stopped_or_replaced_loses_nothing_of_32_clients(
    setting: Setting, new_writer: Callable[[Home], Writer]
) -> None:
    """Clients wait in vain, find the mark of a hanging intake, or connect after a resume."""
    chosen = random_of("stops")

    def stop_and_continue(intake: Process) -> None:
        for _ in range(chosen.randrange(3)):
            intake.signal(signal.SIGSTOP)
            time.sleep(chosen.choice((0.01, 0.1, 0.6)))
            intake.signal(signal.SIGCONT)
            time.sleep(chosen.random() * 0.05)

    disturb_during_events(setting, new_writer, stop_and_continue)


def of_version_2(setting: Setting) -> None:
    """Make the native hook write frames of a version unknown to the intake."""
    program = setting.native.read_bytes()
    assert program.count(b"HPv1") == 1
    setting.native.unlink()
    setting.native.write_bytes(program.replace(b"HPv1", b"HPv2"))
    setting.native.chmod(0o700)


@pytest.mark.parametrize("is_client_newer", [True, False])
def test_a_client_and_an_intake_of_two_versions_lose_and_double_nothing(
    setting: Setting, new_writer: Callable[[Home], Writer], is_client_newer: bool
) -> None:
    """The spool keeps events that the intake does not know for code of their version."""
    server = setting.redis()
    if is_client_newer:
        setting.intake()
        of_version_2(setting)
    else:
        launch(setting, 1 << 40, "HPv2")
    for number in range(8):
        send(setting, number)
    raw = setting.raw()
    assert len(raw) == 8
    if is_client_newer:
        setting.convert()
        assert setting.raw() == raw  # code of version 1 leaves them alone
        for path in raw:
            path.write_bytes(path.read_bytes().replace(b"HPv2", b"HPv1", 1))
    apply_all(setting, server, new_writer(setting.home))
    assert uses(setting) == 8


def test_a_stopped_intake_loses_no_event(
    setting: Setting, new_writer: Callable[[Home], Writer]
) -> None:
    server = setting.redis()
    intake = setting.intake()
    intake.signal(signal.SIGSTOP)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: send(setting, number), range(48)))
    assert len(setting.raw()) >= 4  # the first hooks waited, the others went to Redis
    intake.signal(signal.SIGCONT)  # the intake now takes the events that waited
    apply_all(setting, server, new_writer(setting.home))
    assert uses(setting) == 48


def test_after_one_timeout_the_next_events_skip_the_intake(setting: Setting) -> None:
    """The socket belongs to a program that never answers; after a while one hook tries it again."""
    path = setting.runtime / "intake.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(99)
        listener.setblocking(False)
        for number in range(6):
            send(setting, number)
        assert connections(listener) == 1
        mark = setting.runtime / "intake-hangs"
        os.utime(mark, (time.time() - 10, time.time() - 10))
        for number in range(6):
            send(setting, number)
        assert connections(listener) == 1
    assert len(setting.raw()) == 12


def connections(listener: socket.socket) -> int:
    """Accept all waiting connections and return their number."""
    for number in range(99):
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return number
    pytest.fail("too many")


def test_an_intake_that_continues_is_used_at_once(setting: Setting) -> None:
    setting.redis()
    intake = setting.intake()
    mark = setting.runtime / "intake-hangs"
    intake.signal(signal.SIGSTOP)
    send(setting, 1)
    assert mark.exists()
    assert setting.fire(setting.native, "UserPromptSubmit", PROMPT) == b""
    assert len(setting.raw()) == 1  # Meanwhile the Python hook answers what can be answered.
    intake.signal(signal.SIGCONT)
    until(lambda: not mark.exists(), "the mark stays")
    intake.signal(signal.SIGSTOP)
    send(setting, 2)  # shows that the intake was asked again
    assert mark.exists()
    assert len(setting.raw()) == 2


@pytest.mark.skipif(not may_trace(), reason="strace is not there, or may not trace")
@pytest.mark.parametrize("call", ["mkdir", "rename"])
def test_one_slow_call_to_the_disk_loses_no_event(setting: Setting, call: str) -> None:
    """The call takes longer than the hook waits, and succeeds."""
    slow = f"inject=?{call},{call}at:delay_enter=700000"
    words = ["strace", "-qq", "-o", "/dev/null", "-e", slow, str(setting.native), "post_tool_use"]
    subprocess.run(words, input=skill_use(1), env=setting.env, timeout=60, check=True)
    assert len(setting.raw()) == 1


# ---- other programs behind the socket

Talk = Callable[[socket.socket], object]


@contextmanager
def someone(setting: Setting, talk: Talk, backlog: int = 16) -> Iterator[None]:
    """Listen in place of the intake."""
    path = setting.runtime / "intake.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(backlog)

        def serve() -> None:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                talk(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            path.unlink()


def frame_of(connection: socket.socket) -> bytes:
    """Read a whole frame."""
    data = b""
    while len(data) < 12 or len(data) < 12 + sum(struct.unpack("<II", data[4:12])):
        data += connection.recv(65536)
    return data


REFUSALS: dict[str, Talk] = {
    "closed": lambda connection: None,
    "closed-when-read": frame_of,
    "garbage": lambda connection: (frame_of(connection), connection.sendall(b"HTTP/1.1 400")),
    "torn": lambda connection: (frame_of(connection), connection.sendall(b"A\0\0")),
    "late": lambda connection: (frame_of(connection), time.sleep(2)),
}


@pytest.mark.parametrize("refusal", REFUSALS)
def test_an_event_that_is_not_taken_goes_to_the_spool(setting: Setting, refusal: str) -> None:
    with someone(setting, REFUSALS[refusal]):
        assert setting.fire(setting.native, "PostToolUse", skill_use(1)) == b""
    assert len(setting.raw()) == 1


ACCEPTANCES = {
    "neutral": (b"A\0\0\0\0", b""),
    "answer": (b"A\3\0\0\0{}\n", b"{}\n"),
    "torn-answer": (b"A\xff\0\0\0{}\n", b""),
    "huge-answer": (b"A\xff\xff\xff\xff" + b"{}", b""),
}


@pytest.mark.parametrize("acceptance", ACCEPTANCES)
def test_an_event_that_is_taken_is_not_spooled(setting: Setting, acceptance: str) -> None:
    said, shown = ACCEPTANCES[acceptance]
    with someone(setting, lambda connection: (frame_of(connection), connection.sendall(said))):
        assert setting.fire(setting.native, "PostToolUse", skill_use(1)) == shown
    assert setting.raw() == []


def test_a_full_socket_queue_sends_events_to_the_spool(setting: Setting) -> None:
    path = setting.runtime / "intake.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(str(path))
            send(setting, 1)
    assert len(setting.raw()) == 1


@pytest.mark.parametrize("version", [b"HPv0", b"HPv2", b"GET "])
def test_a_frame_of_another_version_is_not_answered(setting: Setting, version: bytes) -> None:
    server = setting.redis()
    setting.intake()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(setting.runtime / "intake.sock"))
        client.sendall(version + struct.pack("<II", 3, 2) + b"a=\0{}")
        assert client.recv(10) == b""
    send(setting, 1)  # the next event is answered
    assert jobs_of(server)


def test_a_raw_event_of_a_later_version_stays_and_a_broken_one_is_set_aside(
    setting: Setting,
) -> None:
    send(setting, 1)
    (raw,) = setting.raw()
    whole = raw.read_bytes()
    raw.write_bytes(b"HPv2" + whole[4:])
    setting.convert()
    assert setting.raw() == [raw]
    raw.write_bytes(whole[:-1])
    setting.convert()
    assert setting.raw() == []
    bad = setting.home.path / "spool" / "bad"
    assert (bad / raw.name).read_bytes() == whole[:-1]
    assert "torn" in (bad / f"{raw.name}.reason").read_text()


def test_a_killed_conversion_of_a_raw_event_is_repeated(setting: Setting) -> None:
    send(setting, 1)
    (raw,) = setting.raw()
    whole = raw.read_bytes()
    raw.with_suffix(".json.tmp").write_text('{"v":1,"jobs":[')
    setting.convert()
    (first,) = setting.home.spool
    jobs = json.loads(first.read_text())["jobs"]
    raw.write_bytes(whole)  # as if the converter was killed before it removed this file
    setting.convert()
    again = {job["envelope"]["id"] for job in json.loads(first.read_text())["jobs"]}
    assert again <= {job["envelope"]["id"] for job in jobs}
    assert setting.home.spool == [first]


@pytest.mark.skipif(not ASKED_ROUNDS, reason="starts 10,000 processes")
def test_ten_thousand_hooks_at_once_lose_nothing(
    setting: Setting, new_writer: Callable[[Home], Writer]
) -> None:
    server = setting.redis()
    setting.intake()
    folder = setting.home.root / "events"
    folder.mkdir()
    script = 'i=0; while [ $i -lt 10000 ]; do "$1" post_tool_use < "$2/$i" & i=$((i+1)); done; wait'
    for number in range(10_000):
        (folder / str(number)).write_bytes(skill_use(number))
    words = ["sh", "-c", script, "sh", str(setting.native), str(folder)]
    subprocess.run(words, env=setting.env, check=True, timeout=600)
    apply_all(setting, server, new_writer(setting.home), 400)
    assert uses(setting) == 10_000
    assert not os.listdir(setting.home.path / "spool")
