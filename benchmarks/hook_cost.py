"""The cost of a hook: the whole process over a bare interpreter and two rivals, in one run.

    python benchmarks/hook_cost.py [--runs 40] [--check] [--json FILE]

Every event is measured at 1 kB and at 30 kB, with Redis up, down and stopped (SIGSTOP), and with
10,000 files in the spool. The guard is on, with 20 keyword rules, a briefing, a registered project
and a known instance. Commands take turns, so that a noisy machine disturbs all equally. Figures are
medians. The rivals are a simple hook with redis-py and rq (naive_hook.py), and the hook of a file
queue in bash, jq and sqlite3 (bash_hook.sh; skipped if these are missing).
`--check` fails outside the bounds: 1.4 times `python -I -S -c pass` (PreToolUse 1.5), 14 times
faster than redis-py with rq, 200 ms with Redis stopped (three times that in CI).
"""

import json
import os
import posix
import shutil
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from figures import Figure, conclude, machine, parser
from redis.exceptions import RedisError

from hivepipe import home
from hivepipe.hook.greeting import part_path, project_part
from hivepipe.queue.connection import connect
from hivepipe.stack import hook_copy
from hivepipe.stack.redis_server import arguments, find_server

ROOT = Path(__file__).resolve().parent.parent
PYTHON = os.path.realpath(sys.executable)
BARE = [PYTHON, "-I", "-S", "-c", "pass"]
SIZES = (1_000, 30_000)
MOST_OVER_BARE = 1.4
MOST_OVER_BARE_GUARDED = 1.5  # PreToolUse waits for an answer of Redis
MOST_OVER_BARE_NATIVE = 0.10
LEAST_UNDER_NAIVE = 14.0
MOST_STOPPED_MS = 200.0
SPOOLED_FILES = 10_000
WARM_UP = 3  # rounds that fill the caches
AGAIN = 3
RULE = {"keywords": ["checkout", "cart"], "text": "Prices are whole cents, never floats. " * 5}
BRIEFING = "The last session here split checkout.py into three modules; one is left. " * 20
GUARD = {"HIVEPIPE_GUARD": "all", "HIVEPIPE_GUARD_POLLS": "mcp__*__poll*"}
HOOK_SETTINGS = {"v": 1, "values": GUARD, "context": [RULE] * 20}

EDIT = {"file_path": "/home/ana/shop/checkout.py", "old_string": "a", "new_string": "b"}
AGENT = {"description": "Map callers", "prompt": "List them", "subagent_type": "Explore"}
EVENTS: dict[str, dict[str, object]] = {
    "SessionStart": {"source": "startup", "model": "claude-opus-5"},
    "UserPromptSubmit": {"prompt": "Split checkout.py into smaller modules"},
    "UserPromptExpansion": {"expansion_type": "slash_command", "command_name": "acme:notes"},
    "PreToolUse": {"tool_name": "Edit", "tool_input": EDIT},
    "PreToolUse:denied": {"tool_name": "Bash", "tool_input": {"command": "ls"}},
    "PostToolUse": {"tool_name": "Edit", "tool_input": EDIT, "tool_response": {}},
    "PostToolUse:Agent": {"tool_name": "Agent", "tool_input": AGENT, "tool_response": {}},
    "PostToolUse:Bash": {"tool_name": "Bash", "tool_input": {"command": "ls"}},
    "PostToolUseFailure": {"tool_name": "Agent", "tool_input": AGENT, "error": "Exit code 1"},
    "SubagentStart": {"agent_type": "Explore"},
    "SubagentStop": {"agent_type": "Explore", "last_assistant_message": "Found 7 callers."},
    "PreCompact": {"trigger": "auto", "custom_instructions": None},
    "Stop": {"stop_hook_active": False, "background_tasks": []},
    "StopFailure": {"error": "overloaded"},
    "SessionEnd": {"reason": "prompt_input_exit"},
}


class Setting:
    """A private home with a registered project, and the Redis server of that home."""

    def __init__(self, folder: str) -> None:
        os.umask(0o077)  # files of a home that others may read are not trusted
        self.project = f"{folder}/shop"
        self.home = f"{folder}/home"
        self.environment = {
            "HOME": folder,
            "PATH": os.environ["PATH"],
            "XDG_STATE_HOME": f"{folder}/state",
            "XDG_RUNTIME_DIR": f"{folder}/run",
            "CLAUDE_PROJECT_DIR": self.project,
            "HIVEPIPE_CHECKPOINT_INTERVAL": "0",
        }
        # This process finds the home as the hooks do.
        posix.environ.update({k.encode(): v.encode() for k, v in self.environment.items()})
        hook_copy.write()
        os.makedirs(self.home, mode=0o700)
        self.socket = f"{home.runtime_folder(self.home)}/redis.sock"
        os.makedirs(os.path.dirname(self.socket), mode=0o700)
        record = home.record_path(self.project)
        home.make_folders(os.path.dirname(record))
        # While Redis is down, one hook in 10 s starts the stack. Here that process ends at once.
        runtime = f"runtime={os.path.dirname(self.socket)}"
        lines = (
            f"home={self.home}",
            f"socket={self.socket}",
            runtime,
            "python=/bin/true",
            "state=on",
        )
        home.write_small(record, "\n".join(lines) + "\n")
        home.write_small(home.record_path(self.home), "\n".join(lines) + "\n")
        Path(self.home, "hook-settings.json").write_text(json.dumps(HOOK_SETTINGS))
        part = Path(part_path(self.home, project_part(self.project)))
        part.parent.mkdir()
        part.write_text(BRIEFING)
        self.server: subprocess.Popen[bytes] | None = None

    def start_server(self) -> None:
        command = [find_server(), *arguments(self.home, self.socket)]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while not self._answers():
            time.sleep(0.01)

    def _answers(self) -> bool:
        try:
            return bool(connect(self.socket).ping())
        except RedisError:
            return False

    def stop_server(self) -> None:
        if self.server is not None:
            self.server.send_signal(signal.SIGCONT)
            self.server.kill()
            self.server.wait()
            self.server = None


@contextmanager
def redis_state(setting: Setting, state: str) -> Iterator[None]:
    """Put Redis into a state: up, down, stopped, or down with a full spool."""
    if state in ("up", "stopped"):
        setting.start_server()
    if state == "stopped" and setting.server is not None:
        setting.server.send_signal(signal.SIGSTOP)
    if state == "down, 10,000 events spooled":
        spool = Path(setting.home, "spool")
        spool.mkdir(exist_ok=True)
        for number in range(SPOOLED_FILES):
            (spool / f"{number:020d}_1.json").write_text("{}")
    try:
        yield
    finally:
        setting.stop_server()


def event_bytes(event: str, size: int, number: int) -> bytes:
    """Return one event of about this size. Ids differ between runs, so none is a duplicate."""
    fields: dict[str, object] = {
        "session_id": "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111",
        "transcript_path": "/home/ana/.claude/projects/shop/7b1f0c9e.jsonl",
        "cwd": "/home/ana/shop",
        "permission_mode": "acceptEdits",
        "hook_event_name": event.partition(":")[0],
        "prompt_id": f"1d0a6c1e-5b7f-4a6f-8f0e-{number:012d}",
        **EVENTS[event],
    }
    if event == "SessionStart":  # a new session each time, the slowest case
        fields["session_id"] = f"{number:08d}-3a52-4d0e-9c55-0d6a1f2be111"
    if "Tool" in event:
        fields["tool_use_id"] = f"toolu_{event}_{size}_{number}".replace(":", "_")
    if event == "PreToolUse":  # equal calls would count as a loop
        fields["tool_input"] = {**EDIT, "new_string": str(number)}
    if "Subagent" in event:
        fields["agent_id"] = f"a{size}{number:08d}"
    filler = "def pay(cart):\n    return 'total'  # \u20ac\n"
    missing = size - len(json.dumps(fields))
    if missing > 0:
        fields["tool_response"] = {"originalFile": filler * (missing // len(filler))}
    return json.dumps(fields).encode()


def time_process_ms(command: list[str], data: bytes, environment: dict[str, str]) -> float:
    """Run one process with the event on a pipe, as Claude Code does; return its time in ms."""
    read_end, write_end = os.pipe()
    os.write(write_end, data)  # 30 kB fit into a pipe
    os.close(write_end)
    actions = [
        (os.POSIX_SPAWN_DUP2, read_end, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0),
    ]
    start = time.perf_counter()
    pid = os.posix_spawn(command[0], command, environment, file_actions=actions)
    _, status = os.waitpid(pid, 0)
    elapsed = time.perf_counter() - start
    os.close(read_end)
    if status:
        raise SystemExit(f"{command} ended with {status}")
    return elapsed * 1000


def hook_command(event: str) -> list[str]:
    """Return the command that `init` registers for an event (such as PostToolUse:Agent)."""
    name = event.partition(":")[0]
    snake = "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
    return [hook_copy.python_launcher(), snake]


def native_command(event: str) -> list[str]:
    """Return the command of the native hook for an event."""
    launcher, snake = hook_command(event)
    return [launcher.removesuffix(".py"), snake]


# The Python hook answers these events while no stack runs.
ANSWERED = ("SessionStart", "UserPromptSubmit")


@contextmanager
def intake(setting: Setting) -> Iterator[subprocess.Popen[bytes]]:
    """Run the process that takes events from native hooks."""
    command = [sys.executable, "-I", "-S", str(ROOT / "workers" / "intake.py")]
    environment = {**setting.environment, "HIVEPIPE_HOME": setting.home}
    with subprocess.Popen(command, env=environment) as process:
        while not os.path.exists(f"{os.path.dirname(setting.socket)}/intake.sock"):
            time.sleep(0.01)
        try:
            yield process
        finally:
            process.terminate()


def cpu_of(pid: int) -> float:
    """Return the CPU time in seconds of a running process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_native(setting: Setting, runs: int) -> dict[str, float]:
    """Return the cost of the native hook, with its intake and without one."""
    found = {}
    with redis_state(setting, "up"), intake(setting) as process:
        found["native hook, stack up, worst"] = worst_native(setting, list(EVENTS), 10**6, runs)
        found |= of_a_stream(setting, process.pid)
    away = [event for event in EVENTS if event not in ANSWERED]
    found["native hook, stack down, worst"] = worst_native(setting, away, 2 * 10**6, runs)
    return found


def worst_native(setting: Setting, events: list[str], first: int, runs: int) -> float:
    """Return the highest ratio of a median to a bare interpreter's median, measured in turns.

    As in `measure`, a median above its bound is measured again.
    """
    cells = [(event, size) for event in events for size in SIZES]
    found = medians(setting, cells, first, runs, native_command)
    high = [cell for cell in cells if found[cell][0] > found[cell][1] * MOST_OVER_BARE_NATIVE]
    found |= medians(setting, high, first + 500_000, runs * AGAIN, native_command)
    return max(hook / bare for hook, bare in found.values())


def of_a_stream(setting: Setting, pid: int) -> dict[str, float]:
    """Return the native hook's p99 at 200 events a second, its CPU over Python's, its memory."""
    times, events = [], [f"{n}" for n in range(400)]
    began, own = cpu_of(pid), os.times()
    start = time.perf_counter()
    for number, _ in enumerate(events):
        time.sleep(max(0.0, start + number / 200 - time.perf_counter()))
        data = event_bytes("PostToolUse", 1000, 3 * 10**6 + number)
        times.append(time_process_ms(native_command("PostToolUse"), data, setting.environment))
    spent = os.times()
    native = cpu_of(pid) - began + children(spent) - children(own)
    for number, _ in enumerate(events):
        data = event_bytes("PostToolUse", 1000, 4 * 10**6 + number)
        time_process_ms(hook_command("PostToolUse"), data, setting.environment)
    python = children(os.times()) - children(spent)
    memory = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\nPss:")[1].split()[0]
    return {
        "native hook, 200 events a second, p99": sorted(times)[int(len(times) * 0.99)],
        "native hook and intake, CPU": native / python,
        "intake, memory": int(memory) / 1000,
    }


def children(spent: os.times_result) -> float:
    return spent.children_user + spent.children_system


Table = dict[str, dict[str, tuple[float, float]]]


def measure(setting: Setting, state: str, runs: int) -> Table:
    """Return event -> size -> (median of the hook, median of the bare interpreter in this state).

    A median above its bound is measured again, AGAIN times as often, and replaced. The highest of
    thirty medians is often the one that another process disturbed.
    """
    cells = [(event, size) for event in EVENTS for size in SIZES]
    with redis_state(setting, state):
        found = medians(setting, cells, 1000, runs)
        if state != "stopped":
            high = [cell for cell in cells if found[cell][0] > found[cell][1] * bound_of(cell[0])]
            found |= medians(setting, high, 100_000, runs * AGAIN)
    table: Table = {event: {} for event in EVENTS}
    for (event, size), both in found.items():
        table[event][f"{size // 1000} kB"] = both
    return table


def medians(
    setting: Setting,
    cells: list[tuple[str, int]],
    first: int,
    runs: int,
    command_of: Callable[[str], list[str]] = hook_command,
) -> dict[tuple[str, int], tuple[float, float]]:
    """Return the median of each hook, and of a bare interpreter that runs after each hook.

    The interpreter's median is that of all its starts. With a median for each hook, the highest
    ratio would be the one with the fastest bare starts.
    """
    hooks: dict[tuple[str, int], list[float]] = {cell: [] for cell in cells}
    bares: list[float] = []
    for number in range(-WARM_UP, runs):
        for event, size in cells:
            data = event_bytes(event, size, first + number)
            hook = time_process_ms(command_of(event), data, setting.environment)
            bare = time_process_ms(BARE, data, setting.environment)
            if number >= 0:
                hooks[event, size].append(hook)
                bares.append(bare)
    return {cell: (statistics.median(hooks[cell]), statistics.median(bares)) for cell in cells}


def bound_of(event: str) -> float:
    """Return the bound of a hook, in starts of a bare interpreter."""
    return MOST_OVER_BARE_GUARDED if event.startswith("PreToolUse") else MOST_OVER_BARE


def rivals(setting: Setting) -> dict[str, list[str]]:
    """Return the commands of the rivals; their Python is not isolated."""
    found = {
        "redis-py + rq": [
            sys.executable,
            "-I",
            str(ROOT / "benchmarks" / "naive_hook.py"),
            setting.socket,
        ]
    }
    if shutil.which("jq") and shutil.which("sqlite3"):
        folder = Path(setting.project, "file-queue")
        for name in ("pending", ".tmp"):
            (folder / name).mkdir(parents=True)
        with sqlite3.connect(folder / "hive.db") as connection:
            connection.execute("CREATE TABLE sessions (id TEXT PRIMARY KEY, swarm_id TEXT)")
        script = str(ROOT / "benchmarks" / "bash_hook.sh")
        found["bash, jq, sqlite3"] = [str(shutil.which("bash")), script, str(folder)]
    return found


Rivals = dict[str, dict[str, tuple[float, float]]]


def measure_rivals(setting: Setting, runs: int) -> Rivals:
    """Return rival -> event -> medians in ms of the rival and of ours, with Redis up."""
    found: Rivals = {}
    with redis_state(setting, "up"):
        for rival, command in rivals(setting).items():
            found[rival] = {}
            for event in ("PostToolUse", "UserPromptSubmit", "SubagentStop"):
                theirs, ours = [], []
                for number in range(-WARM_UP, max(runs // 2, 5)):
                    data = event_bytes(event, 1000, number + 500_000)
                    slow = time_process_ms(command, data, setting.environment)
                    own = hook_command(event)
                    fast = time_process_ms(own, data, setting.environment)
                    if number >= 0:
                        theirs.append(slow)
                        ours.append(fast)
                found[rival][event] = statistics.median(theirs), statistics.median(ours)
    return found


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument("--runs", type=int, default=40, help="rounds per state (40)")
    options = arguments_of.parse_args()
    states = ("up", "down", "stopped", "down, 10,000 events spooled")
    with tempfile.TemporaryDirectory(prefix="hp", dir="/tmp") as folder:
        setting = Setting(os.path.realpath(folder))
        tables = {state: measure(setting, state, options.runs) for state in states}
        beside = measure_rivals(setting, options.runs)
        native = measure_native(setting, options.runs) if hook_copy.is_native() else {}
    show(tables, beside)
    figures = [*judged(tables, beside), *judged_native(native)]
    conclude(options, figures, {"tables": tables, "rivals": beside, "native": native})


def judged_native(native: dict[str, float]) -> list[Figure]:
    """Return the native hook's figures with their bounds."""
    bounds = {
        "native hook, stack up, worst": ("x bare Python", MOST_OVER_BARE_NATIVE),
        "native hook, stack down, worst": ("x bare Python", MOST_OVER_BARE_NATIVE),
        "native hook, 200 events a second, p99": ("ms", 5.0),
        "native hook and intake, CPU": ("x Python hook", 0.35),
        "intake, memory": ("MB", 15.0),
    }
    return [
        Figure(name, value, *bounds[name], is_time=bounds[name][0] == "ms")
        for name, value in native.items()
    ]


def show(tables: dict[str, Table], beside: Rivals) -> None:
    """Print the median of every event, and its ratio to a bare interpreter."""
    print(f"{machine()}; whole process, medians, and the ratio")
    print("to `python -I -S -c pass`, which took turns with them")
    for state, table in tables.items():
        print(f"\n{'Redis ' + state:<24}" + "".join(f"{size // 1000:>12} kB" for size in SIZES))
        for event, row in table.items():
            cells = "".join(f"{hook:7.2f} x{hook / bare:5.2f} " for hook, bare in row.values())
            print(f"  {event:<22}{cells}")
    for rival, events in beside.items():
        print(f"\nbeside {rival} (Redis up, 1 kB)")
        for event, (slow, fast) in events.items():
            print(f"  {event:<24}{slow:8.1f} ms  {slow / fast:5.1f} times {fast:.1f} ms")


def judged(tables: dict[str, Table], beside: Rivals) -> list[Figure]:
    """Return the worst ratio of every state, and the lowest ratio to each rival."""
    figures = []
    for state, table in tables.items():
        if state == "stopped":
            slowest = max(hook for row in table.values() for hook, _ in row.values())
            figures.append(
                Figure("hook, Redis hangs, worst", slowest, "ms", MOST_STOPPED_MS, is_time=True)
            )
            continue
        for name, is_guarded in (("hook", False), ("PreToolUse", True)):
            worst = max(
                hook / bare
                for event, row in table.items()
                if event.startswith("PreToolUse") == is_guarded
                for hook, bare in row.values()
            )
            bound = MOST_OVER_BARE_GUARDED if is_guarded else MOST_OVER_BARE
            figures.append(Figure(f"{name}, Redis {state}, worst", worst, "x bare Python", bound))
    for rival, events in beside.items():
        least = min(slow / fast for slow, fast in events.values())
        bound = LEAST_UNDER_NAIVE if rival == "redis-py + rq" else None
        figures.append(Figure(f"{rival}, compared with our hook", least, "x as long", None, bound))
    return figures


if __name__ == "__main__":
    main()
