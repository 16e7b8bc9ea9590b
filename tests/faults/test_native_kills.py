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
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from hivepipe.hook.intake_server import MOST_READ_AT_ONCE
from tests import payloads
from tests.conftest import ROOT, Home, Process, Server, Writer, until
from tests.faults.harness import random_of
from tests.native import BUILT, HookHome, jobs_of, may_trace
from tests.payloads import changed, encoded
from tests.rounds import ASKED_ROUNDS

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="no native hook for this machine")

QUEUES = ("high", "medium", "low")
PROMPT = encoded(payloads.EVENTS["UserPromptSubmit"])
STEPS_AT_MOST = 400
STRIDE = 1 if ASKED_ROUNDS else 5  # distance between two tested steps of an event
LAUNCHER = Path(__file__).with_name("launch_intake.py")


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


def send(hook_home: HookHome, number: int) -> None:
    hook_home.fire(hook_home.native, "PostToolUse", skill_use(number))


def apply_all(hook_home: HookHome, server: Server, writer: Writer, secs: float = 60) -> None:
    """Let the writer apply all jobs in Redis and in the spool."""
    if not writer.is_running:
        writer.start()
    until(lambda: not hook_home.raw() and not hook_home.home.spool, "the spool stays", secs)
    keys = [f"rq:{kind}:{queue}" for kind in ("wip", "scheduled") for queue in QUEUES]
    client = server.client()
    until(lambda: not (jobs_of(server) or any(map(client.zcard, keys))), "jobs wait", secs)


def uses(hook_home: HookHome) -> int:
    return len(hook_home.home.rows("SELECT * FROM v_skill_uses"))


def launch(hook_home: HookHome, at: int, version: str = "") -> Process:
    """Start an intake that is killed at a step; `version` is the only one that it knows."""
    return start_intake(hook_home, str(LAUNCHER), str(ROOT), str(at), version)


def start_intake(hook_home: HookHome, *words: str) -> Process:
    command = [sys.executable, "-I", "-S", *words]
    env = {**hook_home.env, "HIVEPIPE_HOME": str(hook_home.home.path)}
    made = Process(command, hook_home.home.root / "intake.log", env, hook_home.home.root)
    hook_home.intakes.append(made)
    (hook_home.runtime / "intake.sock").unlink(missing_ok=True)
    made.start()
    until((hook_home.runtime / "intake.sock").exists, "the intake does not listen")
    return made


def start_patient_intake(hook_home: HookHome) -> Process:
    """Start an intake that does nothing without a connection or a signal."""
    patient = "from hivepipe.hook import intake_server; intake_server._CHECK_SECS = 600"
    program = f"import sys; sys.path[:0] = sys.argv[1:]; {patient}; intake_server.main()"
    return start_intake(hook_home, "-c", program, str(ROOT))


def test_a_signal_ends_the_wait_of_an_intake(hook_home: HookHome) -> None:
    """Otherwise `down` would wait for it, half a second on average."""
    intake = start_patient_intake(hook_home)
    send(hook_home, 1)
    until(lambda: psutil.Process(intake.pid).status() == psutil.STATUS_SLEEPING, "no wait")
    assert intake.end(signal.SIGTERM) == 0


def test_a_signal_to_a_child_of_the_intake_does_not_end_it(hook_home: HookHome) -> None:
    """The child that applies a spool file shares the listener."""
    program = """
import posix, sys
sys.path.insert(0, sys.argv[1])
from hivepipe.hook import intake_server
serve = intake_server.Server.serve
def serve_after_child(server):
    if posix.fork() == 0:
        server._request_end()
        posix._exit(0)
    posix.wait()
    posix.mkdir(sys.argv[2])
    serve(server)
intake_server.Server.serve = serve_after_child
intake_server.main()
"""
    has_ended = hook_home.runtime / "child-has-ended"
    start_intake(hook_home, "-c", program, str(ROOT), str(has_ended))
    until(has_ended.exists, "no child")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(hook_home.runtime / "intake.sock"))


def test_more_silent_connections_than_are_read_cost_no_processor_time(hook_home: HookHome) -> None:
    intake = hook_home.intake()
    with ExitStack() as stack:
        for _ in range(MOST_READ_AT_ONCE + 1):
            silent = stack.enter_context(socket.socket(socket.AF_UNIX))
            silent.connect(str(hook_home.runtime / "intake.sock"))
        process = psutil.Process(intake.pid)
        until(lambda: process.num_fds() > MOST_READ_AT_ONCE, "they are not accepted")
        before = process.cpu_times()
        time.sleep(1)
        after = process.cpu_times()
    assert after.user + after.system - before.user - before.system < 0.1
    send(hook_home, 1)
    assert hook_home.raw() == []


def lives_on(intake: Process) -> bool:
    """Return whether the intake survived; its sockets close a moment before it ends."""
    end = time.monotonic() + 1
    while intake.is_running and time.monotonic() < end:
        time.sleep(0.002)
    return intake.is_running


@pytest.mark.parametrize("has_redis", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_an_intake_killed_at_any_step_loses_and_doubles_no_event(
    hook_home: HookHome, new_writer: Callable[[Home], Writer], kind: str, has_redis: bool
) -> None:
    server = hook_home.redis() if has_redis else None
    (hook_home.home.path / "hook-settings.json").write_text(json.dumps(RULES))
    event, counted = KINDS[kind]
    sent, answers = 0, []
    for at in range(1, STEPS_AT_MOST, STRIDE):
        intake = launch(hook_home, at)
        answers.append(hook_home.fire(hook_home.native, kind, event(sent := sent + 1)))
        if lives_on(intake):
            break
    else:
        pytest.fail("it is still killed")
    assert sent > 10
    assert_answered(kind, answers)
    apply_all(hook_home, server or hook_home.redis(), new_writer(hook_home.home))
    until(lambda: hook_home.home.rows(counted)[0]["n"] >= sent, "an event is lost")
    assert hook_home.home.rows(counted)[0]["n"] == sent


def assert_answered(kind: str, answers: list[bytes]) -> None:
    """A prompt is answered completely or not at all, and before most of the work."""
    said = {answer for answer in answers if answer}
    assert len(said) == (kind == "UserPromptSubmit")
    if said:
        assert b"Whole cents." in said.pop()
        assert len([answer for answer in answers if answer]) > 3


def test_hooks_killed_at_any_time_double_no_event(
    hook_home: HookHome, new_writer: Callable[[Home], Writer]
) -> None:
    server = hook_home.redis()
    hook_home.intake()
    chosen = random_of("native hooks")
    whole = 0
    for number in range(200 if ASKED_ROUNDS else 60):
        process = hook_home.start(hook_home.native, "PostToolUse")
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
    apply_all(hook_home, server, new_writer(hook_home.home))
    applied = hook_home.home.rows("SELECT * FROM v_skill_uses")
    assert len({row["skill"] for row in applied}) == len(applied)
    assert whole <= len(applied) <= 200


def test_an_intake_that_is_stopped_killed_and_replaced_loses_nothing_of_32_clients(
    hook_home: HookHome, new_writer: Callable[[Home], Writer]
) -> None:
    """Clients wait in vain, find the mark of a hanging intake, or connect after a resume."""
    chosen = random_of("stops")
    server = hook_home.redis()
    events = 640 if ASKED_ROUNDS else 160
    is_over = threading.Event()

    def disturb_repeatedly() -> None:
        while not is_over.is_set():
            intake = hook_home.intake()
            for _ in range(chosen.randrange(3)):
                intake.signal(signal.SIGSTOP)
                time.sleep(chosen.choice((0.01, 0.1, 0.6)))
                intake.signal(signal.SIGCONT)
                time.sleep(chosen.random() * 0.05)
            intake.end(signal.SIGKILL)

    disturbing = threading.Thread(target=disturb_repeatedly)
    disturbing.start()
    try:
        with ThreadPoolExecutor(32) as pool:
            list(pool.map(lambda number: send(hook_home, number), range(events)))
    finally:
        is_over.set()
        disturbing.join()
    apply_all(hook_home, server, new_writer(hook_home.home))
    assert uses(hook_home) == events


def of_version_2(hook_home: HookHome) -> None:
    """Make the native hook write frames of a version unknown to the intake."""
    program = hook_home.native.read_bytes()
    assert program.count(b"HPv1") == 1
    hook_home.native.unlink()
    hook_home.native.write_bytes(program.replace(b"HPv1", b"HPv2"))
    hook_home.native.chmod(0o700)


@pytest.mark.parametrize("is_client_newer", [True, False])
def test_a_client_and_an_intake_of_two_versions_lose_and_double_nothing(
    hook_home: HookHome, new_writer: Callable[[Home], Writer], is_client_newer: bool
) -> None:
    """Events of a version that the intake does not know stay in the spool, for code that does."""
    server = hook_home.redis()
    if is_client_newer:
        hook_home.intake()
        of_version_2(hook_home)
    else:
        launch(hook_home, 1 << 40, "HPv2")
    for number in range(8):
        send(hook_home, number)
    raw = hook_home.raw()
    assert len(raw) == 8
    if is_client_newer:
        hook_home.convert()
        assert hook_home.raw() == raw  # code of version 1 leaves them alone
        for path in raw:
            path.write_bytes(path.read_bytes().replace(b"HPv2", b"HPv1", 1))
    apply_all(hook_home, server, new_writer(hook_home.home))
    assert uses(hook_home) == 8


def test_a_stopped_intake_loses_no_event(
    hook_home: HookHome, new_writer: Callable[[Home], Writer]
) -> None:
    server = hook_home.redis()
    intake = hook_home.intake()
    intake.signal(signal.SIGSTOP)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: send(hook_home, number), range(48)))
    assert len(hook_home.raw()) >= 4  # the first hooks waited, the others went to Redis
    intake.signal(signal.SIGCONT)  # the intake now takes the events that waited
    apply_all(hook_home, server, new_writer(hook_home.home))
    assert uses(hook_home) == 48


def test_after_one_timeout_the_next_events_skip_the_intake(hook_home: HookHome) -> None:
    """The socket belongs to a program that never answers; after a while one hook tries it again."""
    path = hook_home.runtime / "intake.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(99)
        listener.setblocking(False)
        for number in range(6):
            send(hook_home, number)
        assert connections(listener) == 1
        mark = hook_home.runtime / "intake-hangs"
        os.utime(mark, (time.time() - 10, time.time() - 10))
        for number in range(6):
            send(hook_home, number)
        assert connections(listener) == 1
    assert len(hook_home.raw()) == 12


def connections(listener: socket.socket) -> int:
    """Accept all waiting connections and return their number."""
    for number in range(99):
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return number
    pytest.fail("too many")


def test_an_intake_that_continues_is_used_at_once(hook_home: HookHome) -> None:
    hook_home.redis()
    intake = start_patient_intake(hook_home)
    mark = hook_home.runtime / "intake-hangs"
    intake.signal(signal.SIGSTOP)
    send(hook_home, 1)
    assert mark.exists()
    assert hook_home.fire(hook_home.native, "UserPromptSubmit", PROMPT) == b""
    assert len(hook_home.raw()) == 1  # Meanwhile the Python hook answers what can be answered.
    intake.signal(signal.SIGCONT)
    until(lambda: not mark.exists(), "the mark stays")
    hook_home._wait_for_intake()
    intake.signal(signal.SIGSTOP)
    send(hook_home, 2)  # shows that the intake was asked again
    assert mark.exists()
    assert len(hook_home.raw()) == 2


@pytest.mark.skipif(not may_trace(), reason="strace is not there, or may not trace")
@pytest.mark.parametrize("call", ["mkdir", "rename"])
def test_one_slow_call_to_the_disk_loses_no_event(hook_home: HookHome, call: str) -> None:
    """The call takes longer than the hook waits, and succeeds."""
    slow = f"inject=?{call},{call}at:delay_enter=700000"
    words = ["strace", "-qq", "-o", "/dev/null", "-e", slow, str(hook_home.native), "post_tool_use"]
    subprocess.run(words, input=skill_use(1), env=hook_home.env, timeout=60, check=True)
    assert len(hook_home.raw()) == 1


# ---- other programs behind the socket

Talk = Callable[[socket.socket], object]


@contextmanager
def someone(hook_home: HookHome, talk: Talk, backlog: int = 16) -> Iterator[None]:
    """Listen in place of the intake, and check that a hook connected."""
    (hook_home.runtime / "intake-hangs").unlink(missing_ok=True)  # left by an earlier hook
    path = hook_home.runtime / "intake.sock"
    accepted = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(backlog)

        def serve() -> None:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            accepted.set()
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
        assert accepted.is_set(), "no hook connected"


def frame_of(connection: socket.socket) -> bytes:
    data = b""
    while len(data) < 12 or len(data) < 12 + sum(struct.unpack("<II", data[4:12])):
        data += connection.recv(65536)
    return data


REFUSALS: dict[str, Talk] = {
    "closed": lambda connection: None,
    "closed-when-read": frame_of,
    "garbage": lambda connection: (frame_of(connection), connection.sendall(b"HTTP/1.1 400")),
    "torn": lambda connection: (frame_of(connection), connection.sendall(b"A\0\0\0")),
    "late": lambda connection: (frame_of(connection), time.sleep(2)),
}


def test_an_event_that_is_not_taken_goes_to_the_spool(hook_home: HookHome) -> None:
    for number, (refusal, talk) in enumerate(REFUSALS.items(), 1):
        with someone(hook_home, talk):
            assert hook_home.fire(hook_home.native, "PostToolUse", skill_use(number)) == b""
        assert len(hook_home.raw()) == number, refusal


ACCEPTANCES = {
    "neutral": (b"A\0\0\0\0", b""),
    "answer": (b"A\3\0\0\0{}\n", b"{}\n"),
    "torn-answer": (b"A\xff\0\0\0{}\n", b""),
    "huge-answer": (b"A\xff\xff\xff\xff" + b"{}", b""),
}


def test_an_event_that_is_taken_is_not_spooled(hook_home: HookHome) -> None:
    for number, (acceptance, (said, shown)) in enumerate(ACCEPTANCES.items()):
        with someone(hook_home, lambda it, say=said: (frame_of(it), it.sendall(say))):
            answer = hook_home.fire(hook_home.native, "PostToolUse", skill_use(number))
        assert (answer, hook_home.raw()) == (shown, []), acceptance


def test_a_full_socket_queue_sends_events_to_the_spool(hook_home: HookHome) -> None:
    path = hook_home.runtime / "intake.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(0)
        with socket.socket(socket.AF_UNIX) as first:
            first.connect(str(path))
            send(hook_home, 1)
    assert len(hook_home.raw()) == 1


def test_a_raw_event_of_a_later_version_stays_and_a_broken_one_is_set_aside(
    hook_home: HookHome,
) -> None:
    send(hook_home, 1)
    (raw,) = hook_home.raw()
    whole = raw.read_bytes()
    raw.write_bytes(b"HPv2" + whole[4:])
    hook_home.convert()
    assert hook_home.raw() == [raw]
    raw.write_bytes(whole[:-1])
    hook_home.convert()
    assert hook_home.raw() == []
    bad = hook_home.home.path / "spool" / "bad"
    assert (bad / raw.name).read_bytes() == whole[:-1]
    assert "torn" in (bad / f"{raw.name}.reason").read_text()


def test_a_killed_conversion_of_a_raw_event_is_repeated(hook_home: HookHome) -> None:
    send(hook_home, 1)
    (raw,) = hook_home.raw()
    whole = raw.read_bytes()
    raw.with_suffix(".json.tmp").write_text('{"v":1,"jobs":[')
    hook_home.convert()
    (first,) = hook_home.home.spool
    jobs = json.loads(first.read_text())["jobs"]
    raw.write_bytes(whole)  # as if the converter was killed before it removed this file
    hook_home.convert()
    again = {job["envelope"]["id"] for job in json.loads(first.read_text())["jobs"]}
    assert again <= {job["envelope"]["id"] for job in jobs}
    assert hook_home.home.spool == [first]
