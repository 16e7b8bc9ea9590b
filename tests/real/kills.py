"""Kill a client at a chosen moment, optionally with a process of the stack."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random

from tests.real.hook_payloads import HookPayloads
from tests.real.person import Person
from tests.real.scenarios import TOOLS, agent, bash
from tests.real.script import Say, Script, Slow

SUBAGENT = Script("subagent", [[bash("touch at-agent; sleep 0.4")], [Say("Nothing special here.")]])
BUSY = Script(
    "busy",
    [
        [Say("I look."), bash("touch at-call; sleep 0.4; echo 1")],
        [bash("sleep 0.1; echo 2"), bash("exit 3", fails=True)],
        Slow([Say("I am slow."), bash("pwd")], 0.5),
        [agent(SUBAGENT)],
        [bash("ls")],
        [Say("That was all.")],
    ],
)
ANY_TIME, CALL, STREAM, HOOK, AGENT = "any time", "call", "stream", "hook", "agent"
STREAM_AT = 3  # The answer of this request is slow.
HOOKS = 12  # A whole run starts at least this many hooks.
SECS = (0.3, 4.0)  # from before the first hook to after the last
DELAY_SECS = {HOOK: 0.05, CALL: 0.4, AGENT: 0.4, STREAM: 0.9}
REACHED_SECS = 60.0
ENDING_SECS = 30.0
SUPERVISOR, ALL = "supervisor", "all"


@dataclass(frozen=True, slots=True)
class Kill:
    """When to kill the client, with which signal, and which process of the stack is killed too."""

    moment: str
    signum: signal.Signals = signal.SIGKILL
    process: str = ""


KINDS = (
    Kill(ANY_TIME),
    Kill(CALL),
    Kill(STREAM),
    Kill(HOOK),
    Kill(AGENT),
    Kill(CALL, signal.SIGTERM),
    Kill(CALL, process="writer"),
    Kill(STREAM, signal.SIGTERM),
    Kill(AGENT, signal.SIGINT),
    Kill(HOOK, process="redis"),
    Kill(HOOK, signal.SIGTERM),
    Kill(ANY_TIME, signal.SIGINT),
    Kill(AGENT, process=SUPERVISOR),
    Kill(ANY_TIME, process="slow"),
    Kill(CALL, signal.SIGINT),
    Kill(HOOK, process=ALL),
)


def run_and_kill(person: Person, stored: HookPayloads, kill: Kill, random: Random) -> int:
    """Run a client and kill it as described; return how many processes of the stack died too."""
    pids = stack_pids(person, kill.process) if kill.process else []
    with running_client(person) as client:
        wait_for_moment(person, stored, kill.moment, random, client)
        time.sleep(random.uniform(0, DELAY_SECS.get(kill.moment, 0)))
        # The supervisor is killed before the processes that it would restart.
        steps: list[Callable[[], object]] = [lambda pid=pid: end(pid) for pid in pids]
        steps.insert(random.randint(0, len(steps)), lambda: client.send_signal(kill.signum))
        for step in steps:
            step()
    return len(pids)


@contextmanager
def running_client(person: Person) -> "Iterator[subprocess.Popen[bytes]]":
    """Start a client on the script; kill it if it still runs at the end."""
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


def wait_for_moment(
    person: Person,
    stored: HookPayloads,
    moment: str,
    random: Random,
    client: "subprocess.Popen[bytes]",
) -> None:
    """Wait until the client reaches the moment or ends."""
    before, asked = stored.count, len(person.api.requests)
    wanted = before + random.randint(1, HOOKS)

    def is_at_the_stream() -> bool:
        mine = [each for each in person.api.requests[asked:] if each.script == BUSY.name]
        return len(mine) >= STREAM_AT

    reached: dict[str, Callable[[], bool]] = {
        CALL: (person.project / "at-call").exists,
        AGENT: (person.project / "at-agent").exists,
        HOOK: lambda: stored.count >= wanted,
        STREAM: is_at_the_stream,
    }
    if moment == ANY_TIME:
        with suppress(subprocess.TimeoutExpired):
            client.wait(random.uniform(*SECS))
        return
    end_at = time.monotonic() + REACHED_SECS
    while not reached[moment]() and client.poll() is None and time.monotonic() < end_at:
        time.sleep(0.003)


def stack_pids(person: Person, name: str) -> list[int]:
    """Return the pids of a process of the stack, of its supervisor, or of all; may be empty."""
    running = person.json("status", expect=None)["processes"]
    pids = {each["name"]: each["pid"] for each in running if each["pid"]}
    above = {parent_of(pid) for pid in pids.values()} - {0, 1, os.getpid()}
    if name == ALL:
        return [*above, *pids.values()]
    if name == SUPERVISOR:
        return [*above]
    return [pids[name]] if name in pids else []


def parent_of(pid: int) -> int:
    """Return the parent's pid, or 0 if the process has ended."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def end(pid: int) -> None:
    """Kill a process; ignore it if it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
