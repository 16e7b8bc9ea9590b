"""Report of the demo: recorded rows, latencies of the hooks, numbers of jobs."""

import sqlite3
import statistics
from typing import Any

from rich.console import Console  # noqa: TID251  a type
from rich.table import Table

from hivepipe.cli.demo.day import EXPECTED, SECRET
from hivepipe.files.regular_file import regular

Rows = list[tuple[Any, ...]]


def show_tables(console: Console, database: str) -> list[str]:
    """Show each table; return the names of those that differ from the expected rows."""
    wrong = []
    db = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        for query, expected in EXPECTED.items():
            cursor = db.execute(query)
            rows: Rows = cursor.fetchall()
            name = query.partition("FROM ")[2].split()[0]
            if rows != expected:
                wrong.append(name)
            columns = [column[0] for column in cursor.description]
            _show_table(console, name, columns, rows, rows == expected)
            if rows != expected:
                console.print(f"[red]expected {expected}[/]")
    finally:
        db.close()
    return wrong


def _show_table(
    console: Console, name: str, columns: list[str], rows: Rows, is_right: bool
) -> None:
    mark = "[green]as expected[/]" if is_right else "[red]NOT as expected[/]"
    table = Table(*columns, title=f"{name}: {mark}", title_justify="left", min_width=60)
    for row in rows:
        table.add_row(*(str(value) for value in row))
    console.print(table)


def show_accounts(console: Console, accounts: dict[str, int]) -> bool:
    """Show how many of the accepted jobs are in each state; return True if all are done."""
    others = {name: n for name, n in accounts.items() if name not in ("accepted", "done")}
    console.print(
        f"{accounts['accepted']} jobs accepted = {accounts['done']} done + "
        + " + ".join(f"{count} {name}" for name, count in others.items())
    )
    return accounts["accepted"] == accounts["done"] > 0 and not any(others.values())


def show_cost(console: Console, costs: dict[str, list[float]]) -> None:
    """Show the latency of hooks and of bare interpreters, started alternately."""
    hooks = [
        ms for kind, spent in costs.items() if kind not in ("measured", "bare") for ms in spent
    ]
    console.print(
        f"{len(hooks)} hooks, three at a time on a busy machine: "
        f"median {statistics.median(hooks):.0f} ms, slowest {max(hooks):.0f} ms"
    )
    hook, bare = statistics.median(costs["measured"]), statistics.median(costs["bare"])
    console.print(
        f"one alone: an edit's hook {hook:.1f} ms, a bare `python -I -S -c pass` {bare:.1f} ms: "
        f"[bold]{hook / bare:.2f}[/] times (`make bench` measures more precisely)"
    )


def secrets_found(database: str) -> int:
    """Return the number of database files that contain the API key of the demo's first prompt."""
    found = 0
    for suffix in ("", "-wal"):
        try:
            with open(f"{database}{suffix}", "rb", opener=regular) as file:
                found += SECRET.encode() in file.read()
        except FileNotFoundError:
            continue
    return found
