"""Send what a machine that ends has not sent yet: `hivepipe drain --uplink`.

A membership serves, else HIVEPIPE_TEAM: the URL of a machine's login, shared by many in CI.
"""

import time
from pathlib import Path
from typing import NamedTuple

from hivepipe.errors import TeamAwayError, TeamError
from hivepipe.team import address, membership
from hivepipe.team.address import Address
from hivepipe.team.policy import OTHERS, Policies
from hivepipe.team.shipment import Shipment

ATTEMPTS_EVERY_SECS = 0.5


class Sent(NamedTuple):
    """The result: rows that went, and those that still wait."""

    rows: int
    waiting: int
    server: str


def send(path: Path, limit_secs: float) -> Sent:
    """Send all rows of a home within a time; TeamError: the server took none of what is left."""
    login, share = _login()
    deadline = time.monotonic() + limit_secs
    while True:
        try:
            return _send(path, login, share, deadline)
        except TeamAwayError as error:
            if time.monotonic() + ATTEMPTS_EVERY_SECS > deadline:
                raise TeamError(f"rows were not sent to {login.shown}: {error}") from None
            time.sleep(ATTEMPTS_EVERY_SECS)


def _send(path: Path, login: Address, share: Policies, deadline: float) -> Sent:
    with Shipment(path, login, share) as shipment:
        while time.monotonic() < deadline and shipment.ship_next():
            pass
        return Sent(shipment.sent, shipment.lag().rows, login.shown)


def _login() -> tuple[Address, Policies]:
    given = membership.of_environment()
    if given:
        login = address.parse(given)
        if not login.secret:
            raise TeamError(
                "HIVEPIPE_TEAM has no secret: `hivepipe team invite NAME --ci` prints it"
            )
        return login, {OTHERS: "everything"}  # what the team's policy shares
    return membership.machine_address(), membership.read().share
