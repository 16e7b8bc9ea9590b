"""Checks of the team: the extra, the membership and the status of the uplink."""

from collections.abc import Iterator

from hivepipe.doctor.facts import Facts, Finding
from hivepipe.errors import HivepipeError
from hivepipe.team import membership
from hivepipe.team.connection import EXTRA, is_installed
from hivepipe.team.uplink_status import uplink_report


def joined(facts: Facts) -> Iterator[Finding]:
    """Report an unusable membership, an error of the server, or the machine's member."""
    if not membership.is_joined():
        return
    if not is_installed():
        yield Finding(EXTRA, "pip install 'hivepipe[team]'")
        return
    try:
        membership.read()
        membership.machine_address()
    except HivepipeError as error:
        yield Finding(str(error), "hivepipe team leave; hivepipe team join")
        return
    report = uplink_report(facts.place.home) or {}
    where = f"{report['member']} on {report['machine']}, {report['server']}"
    if report["state"] == "refused":
        yield Finding(f"the team's server refuses this machine ({where}): {report['error']}")
    elif report["error"]:
        yield Finding(f"the team's server is away: {report['error']}", is_note=True)
    else:
        yield Finding(f"rows are sent to a team as {where}", is_note=True)
