"""Send all unsent rows before a machine ends: `hivepipe drain --uplink`.

The login comes from the variable HIVEPIPE_TEAM (the URL of a machine that CI jobs share), or else
from the membership.
"""

import time
from typing import NamedTuple

from hivepipe.errors import TeamAwayError, TeamError
from hivepipe.team import address, membership
from hivepipe.team.address import Address
from hivepipe.team.archives.sending import Pass
from hivepipe.team.connection import connected
from hivepipe.team.policy import OTHERS, Policies
from hivepipe.team.shipment import Shipment
from hivepipe.team.uplink_status import note_all_sent

ATTEMPTS_EVERY_SECS = 0.5


class Sent(NamedTuple):
    """The result of a final send: sent rows, waiting rows, server and sent archive segments."""

    rows: int
    waiting: int
    server: str
    segments: int = 0


def send(home: str, limit_secs: float) -> Sent:
    """Send the rows of a home within a time limit and, if no row is left, its archives.

    Return what was sent, and how many rows wait. Raise TeamError if the server refuses, or is away
    until the time limit.
    """
    login, share = _login()
    deadline = time.monotonic() + limit_secs
    while True:
        try:
            sent = _send(home, login, share, deadline)
            return sent if sent.waiting else _with_archives(home, login, share, sent)
        except TeamAwayError as error:
            if time.monotonic() + ATTEMPTS_EVERY_SECS > deadline:
                raise TeamError(f"rows were not sent to {login.shown}: {error}") from None
            time.sleep(ATTEMPTS_EVERY_SECS)


def _send(home: str, login: Address, share: Policies, deadline: float) -> Sent:
    with Shipment(home, login, share) as shipment:
        while time.monotonic() < deadline and shipment.ship_next():
            pass
        sent = Sent(shipment.sent, shipment.lag().rows, login.shown)
        if not (membership.of_environment() or sent.waiting):
            note_all_sent(home, shipment.mark, shipment.left_out)
        return sent


def _with_archives(home: str, login: Address, share: Policies, sent: Sent) -> Sent:
    with connected(login) as connection:
        made = Pass(connection, home, share)
        return sent._replace(segments=made.run().segments) if made.has_work else sent


def _login() -> tuple[Address, Policies]:
    given = membership.of_environment()
    if given:
        login = address.parse(given)
        if not login.secret:
            raise TeamError(
                "HIVEPIPE_TEAM has no secret: `hivepipe team invite NAME --ci` prints it"
            )
        return login, {OTHERS: "everything"}  # the team's policy decides what is shared
    return membership.machine_address(), membership.read().share
