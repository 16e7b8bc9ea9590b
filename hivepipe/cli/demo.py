"""Command `demo`: one session through the real hooks, a real Redis and a real `rq worker`."""

import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from hivepipe.errors import StackError
from hivepipe.queues.connection import url
from hivepipe.settings import variable
from hivepipe.stack import processes, redis_server
from hivepipe.stack.hook_bundle import write_bundle_if_possible

SESSION = "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111"
SECRET = "sk-ant-api03-" + "EXAMPLE0123456789" * 2
INJECTION = "x','r','{}','s','now'); UPDATE sessions SET status='pwned'; --"

# What Claude Code says in the demo: the hook's file, and the event on its stdin.
STORY: list[tuple[str, dict[str, Any]]] = [
    ("session_start", {"source": "startup", "model": "claude-opus-5"}),
    ("user_prompt_submit", {"prompt": f"Split checkout.py. My key is {SECRET}."}),
    ("pre_tool_use", {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t0"}),
    *(
        (
            "post_tool_use",
            {
                "tool_name": "Edit",
                "tool_input": {"file_path": f"src/{name}.py"},
                "tool_use_id": f"toolu_{name}",
            },
        )
        for name in ("cart", "pay", "ship")
    ),
    (
        "post_tool_use",
        {
            "tool_name": "Agent",
            "tool_input": {"description": "Map callers", "subagent_type": "Explore"},
            "tool_response": {"status": "completed", "agentId": "a41c09be77d2f0e13"},
            "tool_use_id": "toolu_agent",
        },
    ),
    ("subagent_stop", {"agent_id": "a41c09be77d2f0e13", "agent_type": "Explore"}),
    (
        "post_tool_use",
        {
            "tool_name": "Agent",
            "tool_input": {"description": "Try to break in", "subagent_type": INJECTION},
            "tool_response": {"status": "async_launched", "agentId": "b52d10cf88e3a1f24"},
            "tool_use_id": "toolu_injection",
        },
    ),
    (
        "post_tool_use",
        {
            "tool_name": "Skill",
            "tool_input": {"skill": "acme:release-notes", "args": "v3.2"},
            "tool_response": {"success": True},
            "tool_use_id": "toolu_skill",
        },
    ),
    ("stop", {"background_tasks": []}),
]

# What must be in the tables, written down by hand and not computed from what was sent.
EXPECTED: dict[str, list[tuple[Any, ...]]] = {
    "SELECT id, status, model, json_extract(checkpoint_data, '$.operationCount') AS operations "
    "FROM sessions": [(SESSION, "paused", "claude-opus-5", 5)],
    "SELECT name, type, status FROM agents ORDER BY created_at": [
        ("Map callers", "Explore", "completed"),
        ("Try to break in", INJECTION, "spawned"),
    ],
    "SELECT checkpoint_count, operation_count, status FROM instance_sessions": [(5, 5, "active")],
    "SELECT message, json_extract(data, '$.file_path') AS file FROM session_logs "
    "ORDER BY created_at": [
        ("Auto-checkpoint: Edit", "src/cart.py"),
        ("Auto-checkpoint: Edit", "src/pay.py"),
        ("Auto-checkpoint: Edit", "src/ship.py"),
        ("Auto-checkpoint: Agent", ""),
        ("Auto-checkpoint: Agent", ""),
    ],
    "SELECT prompt FROM prompts": [("Split checkout.py. My key is ***REDACTED***.",)],
    "SELECT skill, arguments, success FROM skill_uses": [("acme:release-notes", "v3.2", 1)],
}

console = Console(highlight=False)


@click.command()
def demo() -> None:
    """Send a session through the real hooks, Redis and `rq worker`, and show what landed."""
    server = redis_server.find_server()
    write_bundle_if_possible()
    with tempfile.TemporaryDirectory(prefix="hpdemo", dir="/tmp") as folder:
        scene = _Scene(os.path.realpath(folder))
        console.rule("1  hooks hand events over")
        with scene.redis(server):
            scene.fire(STORY[:-1])
        console.print("[dim]Redis is now killed; the last event finds nobody.[/]")
        scene.fire(STORY[-1:])
        spooled = len(list(Path(scene.home, "spool").glob("*.json")))
        console.print(f"on disk: [bold]{spooled}[/] event, whole; nothing was lost\n")
        console.rule("2  Redis is back; a stock `rq worker` does the work")
        with scene.redis(server):
            scene.run("rq", "info", "-u", url(scene.socket), "--only-queues")
            scene.run("rq", "worker", "--burst", "-q", "-u", url(scene.socket),
                      "high", "medium", "low")  # fmt: skip
            scene.run("rq", "info", "-u", url(scene.socket), "--only-queues")
        scene.run("hivepipe", "drain")
        console.rule("3  what landed in .hive-mind/hive.db")
        wrong = _show_tables(f"{scene.home}/hive.db")
        console.rule("4  what it cost")
        scene.show_cost()
    if wrong:
        raise StackError(f"{wrong} of the tables are not what the list says")
    console.print("\n[green]every table equals the list of what was sent[/]")


class _Scene:
    """A project of its own in a temporary folder, and what happens in it."""

    def __init__(self, folder: str) -> None:
        self.project = f"{folder}/shop"
        self.home = f"{self.project}/.hive-mind"
        self.socket = f"{folder}/run/redis.sock"
        self.environment = {
            "HOME": folder,
            "PATH": f"{Path(sys.executable).parent}:{variable('PATH') or ''}",
            "XDG_STATE_HOME": f"{folder}/state",
            "HIVEPIPE_HOME": self.home,
            "HIVEPIPE_CHECKPOINT_INTERVAL": "0",
            "CLAUDE_PROJECT_DIR": self.project,
            "COLUMNS": "90",
        }
        self.costs: list[tuple[float, float]] = []  # of a hook, of a bare interpreter beside it
        os.makedirs(self.project)
        os.mkdir(os.path.dirname(self.socket), 0o700)
        self.run(
            sys.executable,
            "-I",
            "-c",
            "import sys; from hivepipe.stack.registration import register; register(*sys.argv[1:])",
            self.project,
            self.home,
            self.socket,
            sys.executable,
        )

    @contextmanager
    def redis(self, server: str) -> Iterator[None]:
        """Start the server on this scene's append-only file; at the end kill it, with -9."""
        command = [server, *redis_server.arguments(self.home, self.socket)]
        running = subprocess.Popen(command, stdout=subprocess.DEVNULL, umask=0o077)
        try:
            deadline = time.monotonic() + 10
            while not redis_server.answers(self.socket):
                if running.poll() is not None or time.monotonic() > deadline:
                    raise StackError("the Redis server does not start")
                time.sleep(0.01)
            yield
            time.sleep(1.1)  # appendfsync everysec: as long as a power cut could reach back
        finally:
            running.send_signal(signal.SIGKILL)
            running.wait()

    def fire(self, events: list[tuple[str, dict[str, Any]]]) -> None:
        """Run the hook of each event as Claude Code does."""
        for name, fields in events:
            event = {"session_id": SESSION, "cwd": self.project, **fields}
            script = processes.hooks_folder() / f"{name}.py"
            took, answer = self._time([_python(), "-I", "-S", str(script)], json.dumps(event))
            bare, _ = self._time([_python(), "-I", "-S", "-c", "pass"], "")
            self.costs.append((took, bare))
            what = fields.get("tool_name", "")
            console.print(f"{name:<20} {what:<6} {took:6.1f} ms   {answer.strip()}")

    def _time(self, command: list[str], text: str) -> tuple[float, str]:
        begun = time.perf_counter()
        done = subprocess.run(
            command, input=text, env=self.environment, capture_output=True, text=True, check=True
        )
        return (time.perf_counter() - begun) * 1000, done.stdout

    def run(self, *command: str) -> None:
        """Run a command in the project, its output shown."""
        done = subprocess.run(
            command, env=self.environment, cwd=self.project, capture_output=True, text=True
        )
        shown = [line for line in done.stdout.splitlines() if line and "Updated" not in line]
        if command[0] != sys.executable:
            console.print(f"[bold]$ {' '.join(command)}[/]", soft_wrap=True)
            console.print("\n".join(shown) + "\n", markup=False)
        if done.returncode:
            raise StackError(f"{' '.join(command)}: {done.stderr[-500:]}")

    def show_cost(self) -> None:
        """Compare the hooks with the bare interpreters that ran beside them."""
        hook, bare = (statistics.median(values) for values in zip(*self.costs, strict=True))
        console.print(
            f"median hook {hook:.1f} ms, bare `python -I -S -c pass` {bare:.1f} ms, "
            "measured from outside; `make bench` does it properly"
        )


def _python() -> str:
    """Return the interpreter itself, as `init` registers it: never a shim."""
    return os.path.realpath(sys.executable)


def _show_tables(path: str) -> int:
    """Show each table and return how many are not as expected."""
    wrong = 0
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        for query, expected in EXPECTED.items():
            cursor = db.execute(query)
            rows = cursor.fetchall()
            mark = "[green]as expected[/]" if rows == expected else "[red]NOT as expected[/]"
            wrong += rows != expected
            name = query.partition("FROM ")[2].split()[0]
            table = Table(title=f"{name}: {mark}", title_justify="left", min_width=60)
            for column in cursor.description:
                table.add_column(column[0])
            for row in rows:
                table.add_row(*(str(value) for value in row))
            console.print(table)
    finally:
        db.close()
    return wrong
