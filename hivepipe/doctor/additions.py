"""Checks of optional parts: summaries, a team, the page, operations of installed packages."""

from collections.abc import Iterator
from contextlib import suppress

from hivepipe.config.config_file import unseen
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.errors import (
    NEEDS_PACKAGES,
    CredentialsError,
    HivepipeError,
    OperationFailedError,
)
from hivepipe.operations.custom import installed_names
from hivepipe.operations.custom_runs import declaration_by
from hivepipe.stack import shared_page
from hivepipe.summaries import terms
from hivepipe.summaries.consent import is_enabled, objection
from hivepipe.summaries.providers import SETTABLE, credentials_path, find_offer
from hivepipe.team import connection, membership
from hivepipe.team.uplink_status import uplink_report


def credentials(_facts: Facts) -> Iterator[Finding]:
    """Find a credentials file that others can read."""
    try:
        find_offer(with_environment=False)
    except CredentialsError as error:
        yield Finding(str(error), f"chmod 600 {credentials_path()}")


def summaries(facts: Facts) -> Iterator[Finding]:
    """Report which provider is enabled, and whether it can be used."""
    home = facts.place.home
    offer = None
    with suppress(CredentialsError):  # the check `credentials` reports it
        offer = find_offer(with_environment=False)
    for note in unseen(home):
        yield Finding(note, is_note=True)
    if not is_enabled(home, with_environment=False):
        if offer:
            text = f"{offer.name} could write summaries ({offer.source}); nothing is sent"
            yield Finding(f"{text} until you agree", "hivepipe summaries enable", is_note=True)
        return
    if offer is None:
        mend = f"hivepipe credentials set {SETTABLE[0]}"
        yield Finding("summaries are enabled, but there is no credential", mend)
        return
    refused = objection(home, offer, with_environment=False)
    if refused:
        is_agreement = not (offer.trouble or terms.trouble())
        mend = "hivepipe summaries enable" if is_agreement else ""
        yield Finding(f"summaries are made from metadata, without a model: {refused}", mend)
    else:
        text = f"summaries are written by {offer.model}, with {offer.name} ({offer.source})"
        yield Finding(text, is_note=True)


def team(facts: Facts) -> Iterator[Finding]:
    """Report an unusable team membership, an error of the server, or the name of this member."""
    if not membership.is_joined():
        return
    if not connection.is_installed():
        yield Finding(connection.EXTRA)
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


def page(_facts: Facts) -> Iterator[Finding]:
    """Find a page that the settings enable although its packages are missing."""
    if shared_page.is_enabled() and not shared_page.is_installed():
        yield Finding(f"`web = true` {NEEDS_PACKAGES}")


def operations(_facts: Facts) -> Iterator[Finding]:
    """Report each installed operation with its events, or why it cannot be loaded."""
    for name in installed_names():
        try:
            declaration = declaration_by(name)
        except OperationFailedError as error:
            yield Finding(f"an installed operation cannot be loaded: {error}")
        else:
            text = f"{name} of an installed package runs on {', '.join(declaration.on)}"
            yield Finding(text, is_note=True)
