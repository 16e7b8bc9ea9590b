"""Command `costs`: tokens of Claude's messages and their cost by the price table."""

from datetime import datetime
from typing import Any

import click

from hivepipe.cli.here import store_here
from hivepipe.cli.parameters import DAY, Choice
from hivepipe.cli.tables import local_day, output_options, show_json, show_table, stored
from hivepipe.cli.team_choice import team_choice, team_options
from hivepipe.cli.terminal import say_prose
from hivepipe.costs.price_table import prices_in_force
from hivepipe.errors import StoreError
from hivepipe.home import locate
from hivepipe.reading.costs import GROUPS, Bills, GroupCost, bills
from hivepipe.reading.own_spending import own_or_problem
from hivepipe.reading.team.costs import TEAM_GROUPS, team_bills
from hivepipe.reading.team.source import Choice as Wanted
from hivepipe.reading.team.source import opened
from hivepipe.text.plurals import counted
from hivepipe.text.quoting import cut
from hivepipe.text.visible import printable


@click.command()
@click.option(
    "--by",
    type=Choice(list(TEAM_GROUPS)),
    default="day",
    show_default=True,
    help="Group by this key; person, machine and project need --team.",
)
@click.option("--since", metavar="DAY", type=DAY, help="Only this day and later.")
@team_options
@output_options
def costs(by: str, since: datetime | None) -> None:
    """Show tokens and their cost at the list prices of Anthropic's API.

    With --by agent, messages outside of agents have a row for each session. Days are local, or UTC
    with --utc.
    """
    prices = prices_in_force(locate(".").home)
    wanted = team_choice(since=stored(since))
    if by not in GROUPS and not wanted:
        raise click.UsageError(f"--by {by} needs --team")
    columns = TEAM_GROUPS[by] if wanted else GROUPS[by]
    added = _added(by, wanted, stored(since))
    found = sorted(added.priced(prices), key=lambda each: tuple(each.key.values()))
    if by != "day":
        found.sort(key=lambda each: each.cost.dollars or 0, reverse=True)
    total = GroupCost({}, added.total, added.total.cost(prices))
    own = {} if wanted else own_or_problem()
    if show_json(
        by=by,
        prices={"date": prices.date, "source": prices.source},
        costs=[_entry(each) for each in found],
        total=_entry(total),
        **own,
    ):
        return
    heads = ("messages", "input", "output", "cache read", "cache written", "USD")
    rows = [(*each.key.values(), *_cells(each)) for each in found]
    empty = [""] * (len(columns) - 1)
    show_table((*columns, *heads), [*rows, ("total", *empty, *_cells(total))])
    say_prose(f"List prices of {prices.date}, {prices.source}", 2)
    if total.cost.without_price:
        say_prose(f"No price is known for: {_listed(total.cost.without_price)}", 2)
    if "own_problem" in own:
        raise StoreError(own["own_problem"])
    if own:
        _show_own(own["own"])


def _added(by: str, wanted: Wanted | None, since: str) -> Bills:
    if wanted:
        with opened() as source:
            return team_bills(source, wanted, TEAM_GROUPS[by], local_day)
    with store_here() as store:
        return bills(store, GROUPS[by], local_day, since=since)


def _show_own(own: dict[str, Any]) -> None:
    """Print the spending of hivepipe's own summaries, if there was any call."""
    if not own["ever"]["calls"]:
        return
    today, most = own["today"], own["caps"]
    say_prose(
        f"hivepipe's own summaries, in all projects: {counted(own['ever']['calls'], 'call')}, "
        f"{own['ever']['cost_usd']:.4f} USD; today {today['calls']} of {most['calls']} calls, "
        f"{today['tokens']:,} of {most['tokens']:,} tokens, "
        f"{today['cost_usd']:.4f} of {most['cost_usd']:.2f} USD",
        2,
    )


def _listed(models: list[str]) -> str:
    """Return at most 20 names of models as one text, each cut, and the number of other models."""
    names = [cut(printable(each), 60) or "no name" for each in models[:20]]
    more = f" and {len(models) - 20} more" if len(models) > 20 else ""
    return ", ".join(names) + more


def _entry(each: GroupCost) -> dict[str, Any]:
    return {**each.entry(), "models_without_price": each.cost.without_price}


def _cells(each: GroupCost) -> tuple[str, ...]:
    tokens, cost = each.bill.tokens(), each.cost
    written = tokens.cache_write_5m + tokens.cache_write_1h
    counts = (each.bill.messages, tokens.input, tokens.output, tokens.cache_read, written)
    dollars = "no price" if cost.dollars is None else f"{cost.dollars:.4f}"
    more = "+" if cost.dollars is not None and cost.without_price else ""
    return (*(f"{count:,}" for count in counts), dollars + more)
