"""Every tool call is counted once, whatever is killed while hooks record it."""

import os
import signal
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest

from hivepipe.guard.client import KEPT_CALLS
from hivepipe.hook.hand_over import WAITED_MS
from hivepipe.stack.ping import ping
from tests.conftest import Process, fire, redis_files, until
from tests.faults.harness import Bench
from tests.faults.test_stock_workers import StockStack
from tests.payloads import POST_BASH, PRE_BASH, changed
from tests.rounds import rounds
from tests.sandbox import Sandbox

SESSIONS = tuple(f"c0a11000-0000-4000-8000-00000000000{n}" for n in range(5))


class Callers:
    """Five sessions that make tool calls with real hooks."""

    def __init__(self, env: dict[str, str]) -> None:
        self.env = env
        self.fired = dict.fromkeys(SESSIONS, 0)

    def call(self, session: str, calls: int = 5) -> None:
        """Make the calls of a round, with an event before and one after each call."""
        for _ in range(calls):
            self.fired[session] += 1
            number = self.fired[session]
            call = {
                "session_id": session,
                "tool_use_id": f"toolu_{session[-1]}_{number}",
                "tool_input": {"command": f"echo {number}"},
            }
            for payload in (PRE_BASH, POST_BASH):
                fire(payload["hook_event_name"], changed(payload, **call), self.env)

    def call_while(self, fault: Callable[[], None]) -> None:
        with ThreadPoolExecutor(len(SESSIONS)) as pool:
            calling = [pool.submit(self.call, session) for session in SESSIONS]
            fault()
            for each in calling:
                each.result()

    def call_each(self) -> None:
        """Make two calls in each session, at once."""
        with ThreadPoolExecutor(len(SESSIONS)) as pool:
            list(pool.map(lambda session: self.call(session, 2), SESSIONS))


def counted(database: os.PathLike[str]) -> dict[str, int]:
    sql = "SELECT session_id, sum(calls) FROM activity GROUP BY session_id"
    with closing(sqlite3.connect(database)) as asked, suppress(sqlite3.OperationalError):
        return dict(asked.execute(sql).fetchall())
    return {}  # no writer has started yet


def all_counted(database: os.PathLike[str], callers: Callers, secs: float = 60) -> None:
    try:
        until(lambda: counted(database) == callers.fired, "other counts", secs)
    except pytest.fail.Exception:
        assert counted(database) == callers.fired
    time.sleep(0.1)
    assert counted(database) == callers.fired  # it does not rise further


def kill(sandbox: Sandbox, kinds: tuple[str, ...]) -> None:
    for kind, group in sandbox.processes().items():
        if kind in kinds or not kinds:
            for process in group:
                process.kill()


KILLED: tuple[tuple[str, ...], ...] = (("redis",), ("supervisord",), ("redis", "writer"), ())


def test_all_calls_are_counted_whatever_is_killed(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    callers = Callers(sandbox.env | {"CLAUDE_PROJECT_DIR": str(sandbox.project)})
    for kinds in KILLED * rounds(1):

        def fault(kinds: tuple[str, ...] = kinds) -> None:
            before = sum(callers.fired.values())
            until(lambda: sum(callers.fired.values()) >= before + 10, "no calls")
            kill(sandbox, kinds)

        callers.call_while(fault)
        sandbox.run("up", "-d")
        all_counted(sandbox.home / "hive.db", callers)
        assert not list(sandbox.home.glob("call-notes*")), kinds


def refuse_by_memory(bench: Bench) -> Callable[[], None]:
    bench.redis.config_set("maxmemory", 1)
    return lambda: bench.redis.config_set("maxmemory", 0)


def refuse_as_a_copy(bench: Bench) -> Callable[[], None]:
    bench.redis.replicaof("127.0.0.1", "1")
    return lambda: bench.redis.replicaof("no", "one")


def load_for_long(bench: Bench) -> Callable[[], None]:
    """Make Redis answer LOADING while it reads its file."""
    bench.server.end()
    bench.server.command += ["--key-load-delay", "1000"]
    with redis_files(bench.home.path)[-1].open("ab") as file:
        for number in range(4000):
            key = b"pad:%d" % number
            file.write(b"*3\r\n$3\r\nSET\r\n$%d\r\n%b\r\n$2\r\nxx\r\n" % (len(key), key))
    Process.start(bench.server)
    until(lambda: ping(bench.server.address).startswith(b"-LOADING"), "it does not load")
    return lambda: None


def stop_for_a_while(bench: Bench) -> Callable[[], None]:
    bench.server.signal(signal.SIGSTOP)
    return lambda: bench.server.signal(signal.SIGCONT)


@pytest.mark.parametrize(
    "refuse", [refuse_by_memory, refuse_as_a_copy, load_for_long, stop_for_a_while]
)
def test_calls_that_redis_refuses_are_counted_later(
    bench: Bench, refuse: Callable[[Bench], Callable[[], None]]
) -> None:
    callers = Callers(bench.home.env)
    bench.plain_writer()
    callers.call(SESSIONS[0], 1)
    # A writer that Redis refuses at its start ends, and nothing here restarts it.
    until(lambda: counted(bench.home.database).get(SESSIONS[0]) == 1, "no writer")
    for _ in range(rounds(1)):
        take_again = refuse(bench)
        callers.call_each()
        take_again()
        callers.call(SESSIONS[1], 1)
    all_counted(bench.home.database, callers)


def test_many_calls_that_a_suspended_redis_received_are_counted_once(bench: Bench) -> None:
    """The commands wait in its socket, and their hooks keep the calls on disk as well.

    Redis remembers the last 80 calls of a conversation only.
    """
    callers = Callers(bench.home.env)
    bench.plain_writer()
    callers.call(SESSIONS[0], 1)
    until(lambda: counted(bench.home.database).get(SESSIONS[0]) == 1, "no writer")
    take_again = stop_for_a_while(bench)
    call = changed(PRE_BASH, session_id=SESSIONS[0])
    with ThreadPoolExecutor(5) as pool:
        for number in range(KEPT_CALLS + 20):
            one = changed(call, tool_use_id=f"toolu_late_{number}")
            pool.submit(fire, "PreToolUse", one, callers.env)
    time.sleep(WAITED_MS / 1000)
    take_again()
    until(lambda: not list(bench.home.path.glob("call-notes*")), "the calls stay on disk")
    key = f"hivepipe:activity:{SESSIONS[0]}"
    assert int(bench.redis.hget(key, "calls") or 0) == KEPT_CALLS + 21


def test_stock_workers_count_calls_too(bench: Bench) -> None:
    """A row of the scheduler replaces the writer's part."""
    callers = Callers(bench.home.env)
    bench.redis.config_set("maxmemory", 1)
    callers.call_each()
    bench.redis.config_set("maxmemory", 0)
    assert (bench.home.path / "call-notes").exists()
    StockStack(bench).start()
    all_counted(bench.home.database, callers, 180)  # several workers have to start first
    assert not list(bench.home.path.glob("call-notes*"))
