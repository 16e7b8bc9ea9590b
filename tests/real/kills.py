"""How a client is killed, at what, and who of the stack beside it."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random

from tests.real.hook_payloads import Told
from tests.real.person import Person
from tests.real.scenarios import TOOLS, agent, bash
from tests.real.script import Say, Script, Slow

LOOKER = Script("looker", [[bash("touch at-agent; sleep 0.4")], [Say("Nothing special here.")]])
BUSY = Script(
    "busy",
    [
        [Say("I look."), bash("touch at-call; sleep 0.4; echo 1")],
        [bash("sleep 0.1; echo 2"), bash("exit 3", fails=True)],
        Slow([Say("I am slow."), bash("pwd")], 0.5),
        [agent(LOOKER)],
        [bash("ls")],
        [Say("That was all.")],
    ],
)
ANYTHING, CALL, STREAM, HOOK, AGENT = "anything", "call", "stream", "hook", "agent"
STREAM_AT = 3  # the number of the request whose answer is slow
HOOKS = 12  # of a whole run, at least
SECS = (0.3, 4.0)  # from before the first hook to behind the last
BEHIND_SECS = {HOOK: 0.05, CALL: 0.4, AGENT: 0.4, STREAM: 0.9}
REACHED_SECS = 60.0
ENDING_SECS = 30.0
SUPERVISOR, ALL = "supervisor", "all"


@dataclass(frozen=True, slots=True)
class Kill:
    """At what the client is, with which signal it ends, and which of the stack is killed beside."""

    at: str
    how: signal.Signals = signal.SIGKILL
    beside: str = ""


KINDS = (
    Kill(ANYTHING),
    Kill(CALL),
    Kill(STREAM),
    Kill(HOOK),
    Kill(AGENT),
    Kill(CALL, signal.SIGTERM),
    Kill(CALL, beside="writer"),
    Kill(STREAM, signal.SIGTERM),
    Kill(AGENT, signal.SIGINT),
    Kill(HOOK, beside="redis"),
    Kill(HOOK, signal.SIGTERM),
    Kill(ANYTHING, signal.SIGINT),
    Kill(AGENT, beside=SUPERVISOR),
    Kill(ANYTHING, beside="slow"),
    Kill(CALL, signal.SIGINT),
    Kill(HOOK, beside=ALL),
)


def strike(person: Person, told: Told, kill: Kill, drawn: Random) -> int:
    """Run a client and end it as the kill says; return how many processes of the stack died."""
    victims = stack_pids(person, kill.beside) if kill.beside else []
    with working(person) as client:
        wait_until_at(person, told, kill.at, drawn, client)
        time.sleep(drawn.uniform(0, BEHIND_SECS.get(kill.at, 0)))
        # The supervisor dies before what it would start again.
        blows: list[Callable[[], object]] = [lambda pid=pid: end(pid) for pid in victims]
        blows.insert(drawn.randint(0, len(blows)), lambda: client.send_signal(kill.how))
        for blow in blows:
            blow()
    return len(victims)


@contextmanager
def working(person: Person) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a client on the script; whatever was done to it, it is gone in the end."""
    for name in ("at-call", "at-agent"):
        (person.project / name).unlink(missing_ok=True)
    words = ["-p", BUSY.prompt("Please work"), "--allowedTools", TOOLS]
    with subprocess.Popen(
        [str(person.claude), *words],
        cwd=person.project,
        env=person.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as client:
        try:
            yield client
            client.wait(ENDING_SECS)
        finally:
            client.kill()


def wait_until_at(
    person: Person, told: Told, at: str, drawn: Random, client: "subprocess.Popen[bytes]"
) -> None:
    """Wait until the client is at it, or over."""
    before, asked = told.number, len(person.api.requests)
    wanted = before + drawn.randint(1, HOOKS)

    def is_at_the_stream() -> bool:
        mine = [each for each in person.api.requests[asked:] if each.script == BUSY.name]
        return len(mine) >= STREAM_AT

    reached: dict[str, Callable[[], bool]] = {
        CALL: (person.project / "at-call").exists,
        AGENT: (person.project / "at-agent").exists,
        HOOK: lambda: told.number >= wanted,
        STREAM: is_at_the_stream,
    }
    if at == ANYTHING:
        with suppress(subprocess.TimeoutExpired):
            client.wait(drawn.uniform(*SECS))
        return
    end_at = time.monotonic() + REACHED_SECS
    while not reached[at]() and client.poll() is None and time.monotonic() < end_at:
        time.sleep(0.003)


def stack_pids(person: Person, name: str) -> list[int]:
    """Return the pids of a process of the stack, of its supervisor, or of all; none if it rests."""
    running = person.json("status", expect=None)["processes"]
    pids = {each["name"]: each["pid"] for each in running if each["pid"]}
    above = {parent_of(pid) for pid in pids.values()} - {0, 1, os.getpid()}
    if name == ALL:
        return [*above, *pids.values()]
    if name == SUPERVISOR:
        return [*above]
    return [pids[name]] if name in pids else []


def parent_of(pid: int) -> int:
    """Return the parent of a process; 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def end(pid: int) -> None:
    """Kill a process that may be gone already."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
