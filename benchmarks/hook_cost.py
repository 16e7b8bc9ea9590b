"""What a hook costs: the whole process, against a bare interpreter and a naive hook, in one run.

    python benchmarks/hook_cost.py [--runs 40] [--check] [--json FILE]

Every event, at 1 kB and at 30 kB, with Redis up, down and stopped (SIGSTOP), and with 10,000
files in the spool; the guard on, 20 keyword rules, a briefing, a registered project, a known
instance.
Commands take turns, so that a noisy machine disturbs all alike; medians.
`--check` fails above the bounds: 1.4 times `python -I -S -c pass` (PreToolUse 1.5), 14 times
faster than redis-py with rq, 200 ms with Redis stopped; in CI (a shared machine) at three times
the last one.
"""

import argparse
import json
import os
import posix
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis.exceptions import RedisError

from hivepipe import home
from hivepipe.intake.greeting import part_path, project_part
from hivepipe.queues.connection import connect
from hivepipe.stack.hook_bundle import write_bundle
from hivepipe.stack.redis_server import arguments, find_server

ROOT = Path(__file__).resolve().parent.parent
PYTHON = os.path.realpath(sys.executable)
BARE = [PYTHON, "-I", "-S", "-c", "pass"]
SIZES = (1_000, 30_000)
MOST_OVER_BARE = 1.4
MOST_OVER_BARE_GUARDED = 1.5  # PreToolUse asks Redis and judges its answer
LEAST_UNDER_NAIVE = 14.0
MOST_STOPPED_MS = 200.0
SPOOLED_FILES = 10_000
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
        self.project = f"{folder}/shop"
        self.home = f"{self.project}/.hive-mind"
        self.environment = {
            "HOME": folder,
            "PATH": os.environ["PATH"],
            "XDG_STATE_HOME": f"{folder}/state",
            "XDG_RUNTIME_DIR": f"{folder}/run",
            "CLAUDE_PROJECT_DIR": self.project,
            "HIVEPIPE_CHECKPOINT_INTERVAL": "0",
        }
        # This process looks places up as the hooks do.
        posix.environ.update({k.encode(): v.encode() for k, v in self.environment.items()})
        os.makedirs(self.home, mode=0o700)
        self.socket = f"{home.runtime_folder(self.home)}/redis.sock"
        os.makedirs(os.path.dirname(self.socket), mode=0o700)
        record = home.record_path(self.project)
        home.make_folders(os.path.dirname(record))
        # While Redis is down one hook in 10 s starts the stack: what it forks ends at once here.
        lines = f"home={self.home}", f"socket={self.socket}", "python=/bin/true", "state=on"
        home.write_small(record, "\n".join(lines) + "\n")
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
    """up, down, stopped, or down with a full spool."""
    if state in ("up", "stopped"):
        setting.start_server()
    if state == "stopped" and setting.server is not None:
        setting.server.send_signal(signal.SIGSTOP)
    if state == "10,000 spooled":
        spool = Path(setting.home, "spool")
        spool.mkdir(exist_ok=True)
        for number in range(SPOOLED_FILES):
            (spool / f"{number:020d}_1.json").write_text("{}")
    try:
        yield
    finally:
        setting.stop_server()


def event_bytes(event: str, size: int, number: int) -> bytes:
    """Build one event of about this size; ids differ from run to run, so none is a double."""
    fields: dict[str, object] = {
        "session_id": "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111",
        "transcript_path": "/home/ana/.claude/projects/shop/7b1f0c9e.jsonl",
        "cwd": "/home/ana/shop",
        "permission_mode": "acceptEdits",
        "hook_event_name": event.partition(":")[0],
        "prompt_id": f"1d0a6c1e-5b7f-4a6f-8f0e-{number:012d}",
        **EVENTS[event],
    }
    if event == "SessionStart":  # a new session each time: the costliest way it comes
        fields["session_id"] = f"{number:08d}-3a52-4d0e-9c55-0d6a1f2be111"
    if "Tool" in event:
        fields["tool_use_id"] = f"toolu_{event}_{size}_{number}".replace(":", "_")
    if event == "PreToolUse":  # the other one is a loop
        fields["tool_input"] = {**EDIT, "new_string": str(number)}
    if "Subagent" in event:
        fields["agent_id"] = f"a{size}{number:08d}"
    filler = "def pay(cart):\n    return 'total'  # \u20ac\n"
    missing = size - len(json.dumps(fields))
    if missing > 0:
        fields["tool_response"] = {"originalFile": filler * (missing // len(filler))}
    return json.dumps(fields).encode()


def time_process_ms(command: list[str], data: bytes, environment: dict[str, str]) -> float:
    """Run one process with the event on a pipe, as Claude Code does; return its whole time."""
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


def script(event: str) -> str:
    """PostToolUse:Agent -> hooks/post_tool_use.py."""
    name = event.partition(":")[0]
    snake = "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")
    return str(ROOT / "hooks" / f"{snake}.py")


Table = dict[str, dict[str, tuple[float, float]]]


def measure(setting: Setting, state: str, runs: int) -> Table:
    """Return event -> size -> (median of the hook, median of the bare interpreter beside it)."""
    table: Table = {event: {} for event in EVENTS}
    times: dict[tuple[str, int], list[tuple[float, float]]] = {}
    with redis_state(setting, state):
        for number in range(-3, runs):  # the first rounds warm the caches
            for event in EVENTS:
                for size in SIZES:
                    data = event_bytes(event, size, number + 1000)
                    command = [PYTHON, "-I", "-S", script(event)]
                    hook = time_process_ms(command, data, setting.environment)
                    bare = time_process_ms(BARE, data, setting.environment)
                    if number >= 0:
                        times.setdefault((event, size), []).append((hook, bare))
    for (event, size), pairs in times.items():
        hooks, bares = zip(*pairs, strict=True)
        table[event][f"{size // 1000} kB"] = statistics.median(hooks), statistics.median(bares)
    return table


def measure_naive(setting: Setting, runs: int) -> dict[str, tuple[float, float]]:
    """Return medians in ms of the naive hook and of ours, taking turns, Redis up."""
    found = {}
    with redis_state(setting, "up"):
        for event in ("PostToolUse", "UserPromptSubmit", "SubagentStop"):
            naive, ours = [], []
            for number in range(-1, max(runs // 3, 5)):
                data = event_bytes(event, 1000, number + 500_000)
                # Unlike the real hook it needs site-packages: the virtual environment's python.
                command = [sys.executable, "-I", str(ROOT / "benchmarks" / "naive_hook.py")]
                slow = time_process_ms([*command, setting.socket], data, setting.environment)
                command = [PYTHON, "-I", "-S", script(event)]
                fast = time_process_ms(command, data, setting.environment)
                if number >= 0:
                    naive.append(slow)
                    ours.append(fast)
            found[event] = statistics.median(naive), statistics.median(ours)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=40, help="rounds per state (40)")
    parser.add_argument("--check", action="store_true", help="fail above the bounds")
    parser.add_argument("--json", help="also write the figures to this file")
    options = parser.parse_args()
    os.umask(0o077)
    states = ("up", "down", "stopped", "10,000 spooled")
    write_bundle()
    with tempfile.TemporaryDirectory(prefix="hp", dir="/tmp") as folder:
        setting = Setting(os.path.realpath(folder))
        tables = {state: measure(setting, state, options.runs) for state in states}
        naive = measure_naive(setting, options.runs)
    failures = report(tables, naive)
    if options.json:
        Path(options.json).write_text(json.dumps({"tables": tables, "naive": naive}, indent=1))
    if options.check and failures:
        raise SystemExit("above the bounds: " + "; ".join(failures))


def report(tables: dict[str, Table], naive: dict[str, tuple[float, float]]) -> list[str]:
    """Print the table; return what is above the bounds."""
    failures = []
    most_stopped_ms = MOST_STOPPED_MS * (3 if os.environ.get("CI") else 1)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"Python {sys.version.split()[0]}, load {load}; whole process, medians, and the ratio")
    print("to `python -I -S -c pass` measured beside each")
    for state, table in tables.items():
        print(f"\n{'Redis ' + state:<24}" + "".join(f"{size // 1000:>12} kB" for size in SIZES))
        for event, row in table.items():
            cells = ""
            for label, (hook, bare) in row.items():
                ratio = hook / bare
                cells += f"{hook:7.2f} x{ratio:5.2f} "
                if state == "stopped" and hook > most_stopped_ms:
                    failures.append(f"{event} {label}, Redis stopped: {hook:.0f} ms")
                guarded = event.startswith("PreToolUse")
                bound = MOST_OVER_BARE_GUARDED if guarded else MOST_OVER_BARE
                if state != "stopped" and ratio > bound:
                    failures.append(f"{event} {label}, Redis {state}: x{ratio:.2f}")
            print(f"  {event:<22}{cells}")
    print("\nagainst redis-py + rq (Redis up, 1 kB)")
    for event, (slow, fast) in naive.items():
        print(f"  {event:<24}{slow:8.1f} ms  {slow / fast:5.1f} times slower than {fast:.1f} ms")
        if slow / fast < LEAST_UNDER_NAIVE:
            failures.append(f"{event}: only {slow / fast:.1f} times faster than redis-py + rq")
    return failures


if __name__ == "__main__":
    main()
