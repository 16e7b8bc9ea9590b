"""Report of a team's uplink, for `status` and `team status`."""

from typing import Any

from hivepipe.cli.terminal import say, say_prose
from hivepipe.text.plurals import counted


def show_uplink(report: dict[str, Any]) -> None:
    say(f"team      {report['member']} on {report['machine']}, {report['server']}")
    error = f": {report['error']}" if report["error"] else ""
    if report["since_secs"] is not None:
        say_prose(f"uplink    {report['state']} for {report['since_secs']} s{error}", 10)
    else:
        say_prose(f"uplink    {report['state'] + error if error else 'not started yet'}", 10)
    if report["lag_rows"] is None:
        say("lag       unknown: no uplink has run here yet")
    elif not report["lag_rows"]:
        at = report["shipped_secs"]  # a server that was restored since may lack rows
        say("lag       none" + ("" if at is None else f": the server had all {at} s ago"))
    else:
        say(f"lag       {counted(report['lag_rows'], 'row')}, {report['lag_secs']:.0f} s")
    if report["archives_error"]:
        say_prose(f"archives  not sent: {report['archives_error']}", 10)
    elif report["archives_secs"] is not None:
        say(f"archives  complete {report['archives_secs']} s ago")
    if report["archives_left_out"]:
        number = counted(report["archives_left_out"], "archive")
        say(f"not sent  {number}: the project of their sessions is unknown")
    if report["left_out"]:
        say(f"left out  {counted(report['left_out'], 'row')} that the server cannot store")
