"""Command `status`: processes, jobs, spool, alerts; once, or live."""

import sys
from typing import Any

import click

from hivepipe.cli.tables import json_option, moment, printable, show_json, utc_option
from hivepipe.home import Place, locate
from hivepipe.settings import idle_secs
from hivepipe.stack.lock import Stack
from hivepipe.status_report import status_report


@click.command()
@click.option("--watch", "live", is_flag=True, help="Show it live, until Ctrl-C.")
@json_option
@utc_option
def status(live: bool, as_json: bool, utc: bool) -> None:
    """Show processes, queues, spool and alerts; exit with 1 if the stack is unwell."""
    place = locate(".")
    if live:
        if as_json or not sys.stdout.isatty():
            raise click.UsageError("--watch needs a terminal, and goes without --json")
        from hivepipe.cli.watch import watch  # noqa: PLC0415  rich.live costs 40 ms to import

        watch(place, utc)
        return
    report = status_report(place, Stack.of(place))
    if as_json:
        show_json(**report)
    else:
        _show(report, utc)
        click.echo(verdict(place, report))
    sys.exit(0 if report["healthy"] else 1)


def _show(report: dict[str, Any], utc: bool) -> None:
    click.echo(f"home      {report['home']} ({report['state']})")
    click.echo(f"redis     {report['redis']}, {report['address']}")
    if report["leaves_when_idle"]:
        click.echo(f"started   by a hook; leaves after {idle_secs():.0f} s with nothing to do")
    failed = report["failed_start"]
    if failed:
        click.echo(f"hooks could not start it, {failed['failures']} times: {failed['reason']}")
        click.echo(f"the next hook after {failed['again_in_secs']} s tries again")
    for entry in report["processes"]:
        line = f"{entry['name']:<9} {entry['state']}, pid {entry['pid']}"
        click.echo(f"{line}, up {entry['uptime_secs']} s{silence(report, entry['pid'])}")
    if not report["processes"]:
        _show_workers(report)
    _show_jobs(report)
    click.echo(f"spool     {report['spool']} files, {report['set_aside']} set aside in spool/bad")
    _show_effectless(report["effectless"])
    if report["store_trouble"]:
        trouble = report["store_trouble"]
        click.echo(f"the database does not answer for {trouble['secs']} s: {trouble['reason']}")
    if report["newer_version"]:
        click.echo(
            f"jobs of a newer hivepipe wait (version {report['newer_version']}): upgrade this one"
        )
    for alert in report["alerts"]:
        since = f" (since {moment(alert['since'], utc)})" if alert["since"] else ""
        click.echo(f"alert     {alert['name']}: {printable(alert['text'])}{since}")


def verdict(place: Place, report: dict[str, Any]) -> str:
    """Say how the stack is; where none runs, what starts one."""
    if report["healthy"]:
        return "healthy"
    if report["redis"] == "up" or report["processes"] or report["failed_start"]:
        return "not healthy"
    if not place.python:
        return "no stack: nothing is registered here; see `hivepipe init`"
    if place.state != "on":
        return f"no stack runs, by `hivepipe {place.state}`"
    return "no stack runs: the next event of a session starts it, or `hivepipe up -d`"


def _show_workers(report: dict[str, Any]) -> None:
    """Without a supervisor, what workers say of themselves is all that is known."""
    for worker in report["workers"] or ():
        queues = ", ".join(worker["queues"])
        heard = "nothing was heard"
        if worker["heartbeat_secs"] is not None:
            heard = f"heard {worker['heartbeat_secs']:.0f} s ago"
        where = f"on {printable(worker['host'])}, pid {worker['pid']}"
        click.echo(f"worker    of {printable(queues)} {where}, {heard}")


def silence(report: dict[str, Any], pid: int) -> str:
    """Say so if a process that runs has not said a word for long: it hangs, or was stopped."""
    for worker in report["workers"] or ():
        if worker["pid"] == pid and not worker["alive"] and worker["heartbeat_secs"] is not None:
            return f", silent for {worker['heartbeat_secs']:.0f} s"
    return ""


def _show_effectless(counters: dict[str, int] | None) -> None:
    """A checkpoint without effect is one somebody will miss: it has its own line, always."""
    if counters is None:
        click.echo("no effect unknown without a database")
        return
    of_checkpoints = sum(n for name, n in counters.items() if name.endswith(":update_checkpoint"))
    click.echo(f"no effect {of_checkpoints} of update_checkpoint")
    others = [f"{name} {n}" for name, n in counters.items() if "update_checkpoint" not in name]
    if others:
        click.echo(f"no effect {', '.join(others)}")


def _show_jobs(report: dict[str, Any]) -> None:
    if report["accounts"] is None:
        click.echo("jobs      unknown while Redis is down")
        return
    for name, count in report["queues"].items():
        click.echo(f"{name:<9} {count} waiting")
    if report["oldest_waiting_secs"] is not None:
        click.echo(f"oldest    waits for {report['oldest_waiting_secs']:.0f} s")
    click.echo(f"accepted  {accounted(report)}")


def accounted(report: dict[str, Any]) -> str:
    """Return where the accepted jobs are, as a sum that balances or says that it does not."""
    accounts = report["accounts"]
    parts = {name: count for name, count in accounts.items() if name != "accepted"}
    found = sum(parts.values())
    sign = "=" if found == accounts["accepted"] else f"but {found} are found:"
    terms = " + ".join(f"{count} {name}" for name, count in parts.items())
    by_clock = f", {report['periodic']} by the clock" if report["periodic"] else ""
    return f"{accounts['accepted']} {sign} {terms}{by_clock}"
