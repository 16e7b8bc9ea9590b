"""`status --watch`: the stack on one screen, updated every second.

The database is reopened for each update: a long-lived reader would hold back WAL checkpoints.
"""

import signal
import time
from typing import Any

from rich.columns import Columns
from rich.console import Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hivepipe.cli.rich_terminal import console
from hivepipe.cli.tables import printable, shown_time
from hivepipe.db.listings import Entry, read_store
from hivepipe.home import Place
from hivepipe.monitor.status import status_report
from hivepipe.monitor.status_words import NOT_RUNNING, balance, silence, verdict
from hivepipe.operations.liveness import with_activity
from hivepipe.stack.runtime_folder import Stack
from hivepipe.times import span

EVERY_SECS = 1.0
MOST_SESSIONS = 8
_COLOURS = {
    **dict.fromkeys(("running", "active", "healthy"), "green"),
    **dict.fromkeys(("waiting", "stalled", "degraded", "resting", "stopped", "off"), "yellow"),
    "lost": "red",
}


def watch(place: Place) -> None:
    """Show the screen until Ctrl-C."""
    stack = Stack.of(place)
    done: int | None = None
    looked_at = time.monotonic()
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that the terminal's own screen is restored
        signal.signal(number, signal.default_int_handler)
    with Live(console=console(), screen=True, auto_refresh=False) as live:
        try:
            while True:
                report = status_report(place, stack)
                now = time.monotonic()
                is_known = report["accounts"] is not None
                rate = None
                if is_known and done is not None:
                    rate = (report["accounts"]["done"] - done) / (now - looked_at)
                done = report["accounts"]["done"] if is_known else None
                looked_at = now
                live.update(screen(report, _sessions(place.home), rate), refresh=True)
                time.sleep(EVERY_SECS)
        except KeyboardInterrupt:
            return


def screen(report: dict[str, Any], sessions: list[Entry], rate: float | None) -> RenderableType:
    """Return the screen of a report on a stack, with its sessions; `rate` is in jobs per second."""
    parts: list[RenderableType] = [_head(report)]
    if report["trouble"]:
        parts.append(Text(report["trouble"], style="red"))
    if report["alerts"]:  # near the top, because a short screen cuts off the bottom
        parts.append(_alerts(report))
    parts += [Text(f"reduced: {it['text']}", style="yellow") for it in report["reduced"]]
    parts.append(Columns([_processes(report), _queues(report)]))
    parts += [_jobs(report, rate), _open_sessions(sessions)]
    parts.append(Text("Ctrl-C ends this", style="dim"))
    return Group(*parts)


def _head(report: dict[str, Any]) -> RenderableType:
    word = report["condition"]
    colour = _COLOURS.get(word, "red")
    line = Text.assemble(
        ("hivepipe ", "bold"),
        (word, f"bold {colour}"),
        f"  {printable(report['home'])}  ",
        (f"{time.strftime('%H:%M:%S')}", "dim"),
    )
    return Panel(line, border_style=colour)


def _processes(report: dict[str, Any]) -> RenderableType:
    table = Table(title="processes", title_justify="left", min_width=44)
    for name in ("process", "state", "pid", "up"):
        table.add_column(name, justify="right" if name in ("pid", "up") else "left")
    for entry in report["processes"]:
        hangs = silence(report, entry["pid"])
        colour = "red" if hangs else _COLOURS.get(entry["state"], "red")
        state = Text(f"{entry['state']}{hangs}", style=colour)
        table.add_row(entry["name"], state, str(entry["pid"]), span(entry["uptime_secs"]))
    if not report["processes"]:
        word = report["condition"] if report["condition"] in NOT_RUNNING else "not supervised"
        table.add_row("none", Text(word, style=_COLOURS.get(word, "red")), "", "")
    return table


def _queues(report: dict[str, Any]) -> RenderableType:
    table = Table(title="queues", title_justify="left", min_width=24)
    table.add_column("queue")
    table.add_column("waiting", justify="right")
    for name, count in (report["queues"] or {}).items():
        table.add_row(name, Text(str(count), style="yellow" if count else ""))
    if report["queues"] is None and report["condition"] not in NOT_RUNNING:
        table.add_row("unknown", Text("Redis is down", style="red"))
    spooled = report["spool"]
    table.add_row(
        "on disk", Text(str(spooled), style="yellow" if spooled else ""), end_section=True
    )
    return table


def _alerts(report: dict[str, Any]) -> RenderableType:
    table = Table(title="alerts", title_justify="left", title_style="bold red")
    for name in ("alert", "since", "what"):
        table.add_column(name)
    for alert in report["alerts"]:
        style = "bold red" if alert["urgent"] else "yellow"
        since = shown_time(alert["since"]) or "just now"
        table.add_row(Text(alert["name"], style=style), since, Text(printable(alert["text"])))
    return table


def _jobs(report: dict[str, Any], rate: float | None) -> RenderableType:
    if report["accounts"] is None:
        word = report["condition"]
        return Text(verdict(report), style=_COLOURS.get(word, "red"))
    lines = [f"jobs {balance(report)}"]
    oldest = report["oldest_waiting_secs"]
    lines.append(
        f"{rate or 0:.0f} jobs/s, "
        + (f"the oldest waits for {oldest:.0f} s" if oldest is not None else "nothing waits")
    )
    return Text("\n".join(lines))


def _open_sessions(sessions: list[Entry]) -> RenderableType:
    table = Table(title=f"open sessions: {len(sessions)}", title_justify="left")
    for name in ("session", "status", "last", "calls", "agents", "about"):
        justify: JustifyMethod = "right" if name in ("calls", "agents") else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name == "session")
    for entry in sessions[:MOST_SESSIONS]:
        table.add_row(
            entry["id"][:8],
            Text(entry["condition"], style=_COLOURS.get(entry["condition"], "")),
            shown_time(entry["last_active_at"]),
            str(entry["calls"]),
            str(entry["agents"]),
            Text(printable(entry["objective"] or entry["project"])),  # a title is not markup
        )
    return table


def _sessions(home: str) -> list[Entry]:
    return read_store(
        home, lambda store: with_activity(store, store.sessions(with_ended=False)), []
    )
