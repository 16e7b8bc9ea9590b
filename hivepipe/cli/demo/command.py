"""Command `demo`: the steps of the day, in order."""

import json
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from types import FrameType

import click

from hivepipe.cli.demo import day, report
from hivepipe.cli.demo.scene import Scene
from hivepipe.cli.rich_terminal import console as new_console
from hivepipe.errors import StackError
from hivepipe.text.plurals import counted

LOCKED_SECS = 2.0
KILL_AFTER_SECS = 0.1
MEASURED = 20

console = new_console()


@click.command()
def demo() -> None:
    """Run a day of work through real hooks and a real stack, and show the recorded rows."""
    with _temporary_project() as scene:
        _morning(scene)
        _locked_database(scene)
        _missing_swarm(scene)
        _killed_at_work(scene, "redis", day.WHILE_REDIS_DIES)
        _killed_at_work(scene, "writer", day.WHILE_WRITER_DIES)
        _all_killed(scene)
        _evening(scene)
        wrong = _report(scene)
    console.print("stack stopped, folder deleted")
    if wrong:
        raise StackError(f"not as expected: {', '.join(wrong)}")
    console.print("\n[green]every table has the expected rows, every job is accounted for[/]")


@contextmanager
def _temporary_project() -> Iterator[Scene]:
    """Yield a folder with a stack. Both are removed at the end, even after Ctrl-C or SIGTERM."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    folder = os.path.realpath(tempfile.mkdtemp(prefix="hpdemo", dir="/tmp"))
    scene = Scene(folder)
    try:
        console.rule("a project in a temporary folder")
        console.print(f"$ hivepipe up -d\n{scene.command('up', '-d').strip()}", soft_wrap=True)
        yield scene
    finally:
        try:
            scene.command("down")
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            signal.signal(signal.SIGTERM, before)


def _interrupt(signum: int, frame: FrameType | None) -> None:
    sys.exit(128 + signum)


def _fire(scene: Scene, events: dict[str, list[day.HookCall]]) -> None:
    begun = time.monotonic()
    with console.status("hooks run"):
        fired = scene.fire(events)
    console.print(f"  {fired} hooks in {time.monotonic() - begun:.1f} s")


def _morning(scene: Scene) -> None:
    console.rule("morning: Ann, Ben and Cleo work in one session")
    console.print("prompts, 36 edits, three agents (one with SQL for a type, one fails), a skill")
    _fire(scene, day.MORNING)
    console.print(f"  all in the database {scene.until_settled():.1f} s after the last hook")


def _locked_database(scene: Scene) -> None:
    console.rule(f"another process holds the database locked for {LOCKED_SECS:.0f} s")
    with closing(sqlite3.connect(f"{scene.home}/hive.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        begun = time.monotonic()
        _fire(scene, day.WHILE_LOCKED)
        time.sleep(max(LOCKED_SECS - (time.monotonic() - begun), 0))
        held = scene.status()["accounts"]
        waiting = counted(held["waiting"] + held["retrying"], "job", "wait")
        console.print(f"  {waiting}, {held['failed']} failed")
        other.execute("ROLLBACK")
    for line in scene.log_lines("Database busy")[:2]:
        console.print(f"  [dim]{line}[/]")
    console.print(f"  unlocked; all written after {scene.until_settled():.1f} s")


def _missing_swarm(scene: Scene) -> None:
    console.rule("the swarm is deleted; Ann starts another agent")
    with closing(sqlite3.connect(f"{scene.home}/hive.db", isolation_level=None)) as other:
        columns = [row[1] for row in other.execute("PRAGMA table_info(swarms)")]
        swarm = other.execute("SELECT * FROM swarms").fetchone()
        other.execute("DELETE FROM swarms")
        _fire(scene, day.WITHOUT_SWARM)
        scene.until(lambda: bool(scene.status()["accounts"]["failed"]), "no failed job")
        scene.until_settled()
        jobs = json.loads(scene.command("failed", "list", "--json"))["failed"]
        job = jobs[0]["id"]
        shown = scene.command("failed", "show", job)
        reason = next(line for line in shown.splitlines() if line.startswith("reason"))
        steps = shown[shown.index("missing swarm") :].strip()
        console.print(f"  {counted(len(jobs), 'failed job')}; $ hivepipe failed show {job[:8]}")
        console.print(f"[dim]{reason}\n{steps}[/]", soft_wrap=True)
        marks = ", ".join("?" * len(columns))
        other.execute(f"INSERT INTO swarms ({', '.join(columns)}) VALUES ({marks})", swarm)
    console.print("  the swarm is restored:")
    console.print(
        f"$ hivepipe failed retry --all\n{scene.command('failed', 'retry', '--all')}", end=""
    )
    scene.until_settled()


def _killed_at_work(scene: Scene, name: str, events: dict[str, list[day.HookCall]]) -> None:
    """Kill one process with SIGKILL while hooks run; the supervisor restarts it."""
    console.rule(f"kill -9: {name}, while all three work")
    with ThreadPoolExecutor(1) as pool:
        begun = time.monotonic()
        running = pool.submit(scene.fire, events)
        time.sleep(KILL_AFTER_SECS)
        pid = scene.kill(name)
        fired = running.result()
    console.print(
        f"  {fired} hooks in {time.monotonic() - begun:.1f} s; {name} (pid {pid}) was killed"
    )
    scene.until(lambda: scene.pid(name) not in (0, pid), f"{name} was not restarted")
    settled = scene.until_settled()
    console.print(
        f"  restarted (pid {scene.pid(name)}); all written {settled:.1f} s after the last hook"
    )


def _all_killed(scene: Scene) -> None:
    console.rule("kill -9: everything, the supervisor first")
    pids = scene.kill_all()
    console.print(f"  killed {', '.join(map(str, pids))}")
    _fire(scene, day.WHILE_ALL_IS_KILLED)
    console.print(f"  {counted(scene.spooled(), 'event', 'wait on disk')}")
    console.print(f"$ hivepipe up -d\n{scene.command('up', '-d').strip()}", soft_wrap=True)
    console.print(f"  all written {scene.until_settled():.1f} s after that")


def _evening(scene: Scene) -> None:
    console.rule("evening: all three processes end")
    _fire(scene, day.EVENING)
    scene.until_settled()


def _report(scene: Scene) -> list[str]:
    console.rule("rows in hive.db")
    database = f"{scene.home}/hive.db"
    wrong = report.show_tables(console, database)
    if report.secrets_found(database):
        wrong.append("redaction")
    console.rule("the accounts of all jobs")
    if not report.show_accounts(console, scene.status()["accounts"]):
        wrong.append("accounts")
    console.rule("latency of the hooks")
    scene.measure(("post_tool_use", day.edits("ann", "morning", 1)[1][1]), MEASURED)
    report.show_cost(console, scene.costs)
    return wrong
