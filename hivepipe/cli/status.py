"""Command `status`: processes, jobs, spool, alerts; once, or live."""

import sys
from typing import Any

import click

from hivepipe.cli.tables import as_json, output_options, printable, show_json, shown_time
from hivepipe.cli.team.uplink_lines import show_uplink
from hivepipe.cli.terminal import is_terminal, say, say_prose
from hivepipe.config.asking import in_a_line, waiting
from hivepipe.home import locate
from hivepipe.monitor.status_words import NOT_RUNNING, balance, silence, verdict
from hivepipe.reading.whole_status import whole_report
from hivepipe.settings import number
from hivepipe.stack import condition
from hivepipe.text.plurals import counted


@click.command()
@click.option("--watch", "live", is_flag=True, help="Update every second until Ctrl-C.")
@output_options
def status(live: bool) -> None:
    """Show processes, queues, spool and alerts.

    Exits with 0 if the stack is healthy, has minor alerts only, or shut down when idle; else with
    1.
    """
    place = locate(".")
    if live:
        if as_json() or not is_terminal():
            raise click.UsageError("--watch needs a terminal and excludes --json")
        from hivepipe.cli.watch import watch  # noqa: PLC0415  rich.live costs 40 ms to import

        watch(place)
        return
    report = whole_report(place)
    if not show_json(**report):
        _show(report)
        if asking := waiting(place.home, place.project):
            say_prose(f"asks      {in_a_line(asking)}: no effect until `hivepipe trust`", 10)
        say_prose(verdict(report), 2)
    sys.exit(0 if report["condition"] in condition.FINE else 1)


def _show(report: dict[str, Any]) -> None:
    _show_stack(report)
    _show_jobs(report)
    _show_spool(report)
    _show_no_ops(report["effectless"])
    if report["team"]:
        show_uplink(report["team"])
    _show_what_is_wrong(report)


def _show_stack(report: dict[str, Any]) -> None:
    say(f"home      {report['home']}")
    if report["other_machine"]:
        machine = report["other_machine"]
        say_prose(f"runs on   {machine}, another machine or container: see its `status`", 10)
    elif report["condition"] not in NOT_RUNNING or report["redis"] == "up":
        say(f"redis     {report['redis']}, {report['address']}")
    if report["trouble"]:
        say_prose(f"          {report['trouble']}", 10)
    if report["leaves_when_idle"]:
        secs = number("HIVEPIPE_IDLE_SECS")
        say(f"started   by a hook; shuts down after {secs:.0f} s without work")
    failed = report["failed_start"]
    if failed:
        times = counted(failed["failures"], "time")
        say_prose(f"hooks could not start the stack, {times}: {failed['reason']}", 2)
        say(f"the next hook after {failed['again_in_secs']} s tries again")
    for entry in report["processes"]:
        line = f"{entry['name']:<9} {entry['state']}, pid {entry['pid']}"
        say_prose(f"{line}, up {entry['uptime_secs']} s{silence(report, entry['pid'])}", 10)
    if not report["processes"]:
        _show_workers(report)


def _show_what_is_wrong(report: dict[str, Any]) -> None:
    if report["store_trouble"]:
        trouble = report["store_trouble"]
        say_prose(f"database  has not answered for {trouble['secs']} s: {trouble['reason']}", 10)
    if report["newer_version"]:
        version = report["newer_version"]
        say_prose(f"jobs of a newer hivepipe wait (version {version}): upgrade this one", 2)
    for reduction in report["reduced"]:
        say_prose(f"reduced   {reduction['text']}", 10)
    for alert in report["alerts"]:
        since = f" (since {shown_time(alert['since'])})" if alert["since"] else ""
        say_prose(f"alert     {alert['name']}: {alert['text']}{since}", 10)
    _show_deletions(report["deletions"])


def _show_deletions(deletions: list[dict[str, Any]]) -> None:
    for each in deletions:
        things = counted(each["number"], each["kind"])
        say_prose(
            f"deletion  {things} of hivepipe, up to {each['oldest_days']:g} days old, will be "
            f"deleted after {shown_time(each['at'])}: "
            f"set {each['rule']} in config.toml to keep it",
            10,
        )


def _show_spool(report: dict[str, Any]) -> None:
    spool, set_aside = report["spool"], report["set_aside"]
    unreadable = f", {set_aside} unreadable in spool/bad" if set_aside else ""
    say(f"spool     {counted(spool, 'event', 'wait')} on disk{unreadable}")
    if report["in_memory"]:
        text = f"{report['in_memory']} of them outside the home, which is not writable"
        say_prose(f"          {text}; they may be lost if the machine stops now", 10)


def _show_workers(report: dict[str, Any]) -> None:
    """Show the workers by their heartbeats, for a stack without a supervisor."""
    for worker in report["workers"] or ():
        queues = ", ".join(worker["queues"])
        heartbeat = "no heartbeat"
        if worker["heartbeat_secs"] is not None:
            heartbeat = f"heartbeat {worker['heartbeat_secs']:.0f} s ago"
        where = f"on {printable(worker['host'])}, pid {worker['pid']}"
        say_prose(f"worker    of {queues} {where}, {heartbeat}", 10)


def _show_no_ops(counters: dict[str, int] | None) -> None:
    """Show the jobs without effect. A checkpoint update without effect is a lost checkpoint."""
    if counters is None:
        say("no-op     unknown without a database")
        return
    of_checkpoints = sum(n for name, n in counters.items() if name.endswith(":update_checkpoint"))
    say(f"no-op     {counted(of_checkpoints, 'checkpoint update')} found no row to change")
    others = [f"{name} {n}" for name, n in counters.items() if "update_checkpoint" not in name]
    if others:
        say_prose(f"no-op     {', '.join(others)}", 10)


def _show_jobs(report: dict[str, Any]) -> None:
    if report["accounts"] is None:
        if report["condition"] not in NOT_RUNNING:
            say("jobs      unknown without Redis")
        return
    for name, count in report["queues"].items():
        say(f"{name:<9} {count} waiting")
    if report["oldest_waiting_secs"] is not None:
        say(f"oldest    waits for {report['oldest_waiting_secs']:.0f} s")
    say_prose(f"accepted  {balance(report)}", 10)
    say(f"retried   {report['retried']}")
