"""Command `hive check`: the state of all workers on one screen, or one worker in full."""

import shutil
from collections import Counter
from typing import Any

import click
from rich.cells import set_cell_size

from hivepipe.cli.hive.here import here_hive, say_troubles, shown_dollars
from hivepipe.cli.tables import as_json, output_options, printable, show_json, shown_time
from hivepipe.cli.terminal import is_terminal, say, say_field, say_text
from hivepipe.orchestrator import records, respawn_policy
from hivepipe.orchestrator.costs import cost_of
from hivepipe.orchestrator.orchestrator import Orchestrator
from hivepipe.orchestrator.plain_file import read_end
from hivepipe.orchestrator.projects import UUID
from hivepipe.orchestrator.worker_state import MEANINGS, ORDER, OVER, CheckedWorker, ending
from hivepipe.redact import redact_text
from hivepipe.text.plurals import counted
from hivepipe.times import stored_time

_LINES = 24
_WIDTH = 100
_LAST_BYTES = 600
_REPORT_BYTES = 1 << 16


@click.command()
@click.argument("start", metavar="[ID]", default="")
@click.option(
    "--all", "shows_all", is_flag=True, help="Show workers that do not fit on the screen, too."
)
@output_options
def check(start: str, shows_all: bool) -> None:
    """Show the state of the workers, or one worker in full.

    Workers that wait for an answer come first.
    """
    orchestrator = Orchestrator(here_hive())
    hive = orchestrator.hive
    found = orchestrator.check([hive.worker(start)] if start else None)
    say_troubles(orchestrator)
    if as_json():
        show_json(workers=[_as_json(checked) for checked in found])
    elif start:
        _show_one(found[0])
    else:
        _show_all(found, shows_all)


def _show_all(found: list[CheckedWorker], shows_all: bool) -> None:
    counts = Counter(checked.state for checked in found)
    say(counted(len(found), "worker"))
    for state, meaning in MEANINGS.items():
        if counts[state]:
            say(f"{counts[state]:>6} {meaning}")
    width, height = _screen()
    ordered = sorted(found, key=lambda it: (ORDER.index(it.state), -it.last_active_ns))
    room = len(ordered) if shows_all else max(height - len(counts) - 5, 3)
    shown = ordered if len(ordered) <= room else ordered[: room - 1]
    if shown:
        say()
    longest = max((len(_short(checked)) for checked in shown), default=0)
    for checked in shown:
        say(set_cell_size(_line(checked, longest), width).rstrip())
    if rest := len(ordered) - len(shown):
        say(f"... and {rest} more: hivepipe hive check --all")


def _screen() -> tuple[int, int]:
    if not is_terminal():
        return 200, _LINES
    size = shutil.get_terminal_size((_WIDTH, _LINES))
    return size.columns, size.lines


def _short(checked: CheckedWorker) -> str:
    """Return a worker's id cut after eight digits of its UUID; every command accepts this form."""
    id = checked.worker.id
    return id[:-28] if UUID.search(id) else id


def _line(checked: CheckedWorker, id_width: int) -> str:
    active_ns = checked.last_active_ns
    at = shown_time(stored_time(active_ns))[5:16] if active_ns else " " * 11
    note = printable(redact_text(" ".join(checked.note.split())))
    return f"{checked.state:<12} {at}  {_short(checked):<{id_width}}  {note}"


def _show_one(checked: CheckedWorker) -> None:
    worker, run = checked.worker, checked.run
    card = worker.card()
    say(f"=== {worker.id} ===")
    _say_field("state", f"{checked.state}: {checked.note}" if checked.note else checked.state)
    active_ns = checked.last_active_ns
    _say_field("heard", shown_time(stored_time(active_ns)) if active_ns else "")
    _say_field("project", card.path)
    _say_field("session", card.session)
    _say_field("task", " ".join(worker.task().split())[:300])
    if run:
        is_its_own = checked.lives and not checked.foreign_pid
        lives = "running" if is_its_own else ending(run) if run.is_started else "never started"
        _say_field("process", f"run {run.number} ({run.kind}), pid {run.pid}: {lives}")
        if run.left_behind and not checked.lives:
            text = f"processes of group {run.pid} still run: kill -- -{run.pid} ends them"
            _say_field("left behind", text)
    if checked.foreign_pid:
        _say_field("process", f"{checked.foreign_pid}, not started by hivepipe, uses its session")
    for step in respawn_policy.steps_taken(worker):
        _say_field("step", f"{shown_time(stored_time(step.at_ns))}  {step.name} (run {step.run})")
    _say_field(
        "cost", f"{shown_dollars(cost_of(worker))} USD in {counted(len(worker.runs()), 'run')}"
    )
    if unpriced := sum(run.is_unpriced for run in worker.runs()):
        _say_field("", f"not included: {counted(unpriced, 'run')} that ended without a result")
    for name in checked.status.fields:
        if name != "status" and name != "options":
            _say_field(name, checked.status.fields[name])
    for number, option in enumerate(checked.status.texts("options"), 1):
        _say_field(f"option {number}", option)
    if checked.state == "need_input":
        say(f"answer with: hivepipe hive answer {worker.id} TEXT (or --option N)")
    _show_end(checked)


def _show_end(checked: CheckedWorker) -> None:
    """Print a worker's report and, if the worker failed, the end of its stderr."""
    worker = checked.worker
    if text := read_end(worker.report, _REPORT_BYTES).strip():
        say()
        say(f"--- {worker.report.name}")
        say_text(redact_text(text))
    if checked.state not in (*OVER, "error", "not started"):
        return
    if text := read_end(worker.stderr, _LAST_BYTES).strip():
        say()
        say(f"--- the end of {worker.stderr.name}")
        say_text(redact_text(text))


def _say_field(name: str, value: object) -> None:
    if value in (None, "", [], ()):
        return
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    say_field(redact_text(name), redact_text(text), 14)


def _as_json(checked: CheckedWorker) -> dict[str, Any]:
    worker, run = checked.worker, checked.run
    return {
        "id": worker.id,
        "state": checked.state,
        "note": redact_text(checked.note),
        "status": checked.status.word,
        "fields": records.shown(checked.status),
        "lives": checked.lives,
        "pid": checked.foreign_pid or (run.pid if run else None),
        "run": run.number if run else 0,
        "exit_code": run.exit_code if run else None,
        "cost_usd": shown_dollars(cost_of(worker)),
        "heard_at": stored_time(checked.last_active_ns) if checked.last_active_ns else None,
        "folder": str(worker.folder),
    }
