"""Command `hive costs`: the cost of workers, by worker or project, and in total."""

from decimal import Decimal

import click

from hivepipe.cli.hive.here import here_hive, say_troubles, shown_dollars
from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import json_option, show_json, show_table
from hivepipe.cli.terminal import say
from hivepipe.db.hive import workers_of
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.orchestrator.costs import MICRO, cost_of
from hivepipe.orchestrator.orchestrator import Orchestrator
from hivepipe.text.plurals import counted


@click.command()
@click.option(
    "--by",
    type=Choice(["worker", "project"]),
    default="worker",
    show_default=True,
    help="Group by this key.",
)
@json_option
def costs(by: str) -> None:
    """Show the cost of workers, including deleted ones.

    The cost of a worker is the sum of the costs of its runs.
    """
    orchestrator = Orchestrator(here_hive())
    hive = orchestrator.hive
    there = {checked.worker.id: checked.worker for checked in orchestrator.check()}
    say_troubles(orchestrator)
    with listings(database_path(hive.home)) as store:
        rows = workers_of(store, hive.stored_root)
    found: dict[str, list[Decimal]] = {}
    for row in rows:
        worker = there.get(row["id"])
        # The folder also has the cost of a run in progress; the row does not.
        cost = cost_of(worker) if worker else Decimal(row["micro_usd"]) / MICRO
        found.setdefault(row["id"] if by == "worker" else row["project"], []).append(cost)
    unpriced = sum(row["unpriced"] for row in rows)
    total = sum((sum(each, Decimal(0)) for each in found.values()), Decimal(0))
    lines = [
        (name, len(each), shown_dollars(sum(each, Decimal(0))))
        for name, each in sorted(found.items(), key=lambda item: (-sum(item[1]), item[0]))
    ]
    entries = [{by: name, "workers": number, "cost_usd": cost} for name, number, cost in lines]
    if show_json(costs=entries, total_usd=shown_dollars(total), unpriced_runs=unpriced):
        return
    show_table((by, "workers", "USD"), [*lines])
    say(f"total {shown_dollars(total)} USD of {counted(len(rows), 'worker')}")
    if unpriced:
        runs = counted(unpriced, "run")
        say(f"not included: {runs} that ended without a result (killed, for example)")
