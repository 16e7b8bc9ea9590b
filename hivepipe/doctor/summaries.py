"""Checks of the provider for summaries; they show names of credentials, but never a key."""

from collections.abc import Iterator

from hivepipe.config.config_file import unseen
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.errors import CredentialsError
from hivepipe.summaries import terms
from hivepipe.summaries.consent import is_enabled, objection
from hivepipe.summaries.providers import SETTABLE, Offer, credentials_path, find_offer


def credentials(_facts: Facts) -> Iterator[Finding]:
    """Find a credentials file that others can read."""
    try:
        find_offer(with_environment=False)
    except CredentialsError as error:
        yield Finding(str(error), f"chmod 600 {credentials_path()}")


def agreed(facts: Facts) -> Iterator[Finding]:
    """Report which provider is enabled, and whether it can be used."""
    home = facts.place.home
    offer = _offer()
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
        yield Finding(f"summaries are plain: {refused}", mend)
    else:
        text = f"summaries are written by {offer.model}, with {offer.name} ({offer.source})"
        yield Finding(text, is_note=True)


def _offer() -> Offer | None:
    try:
        return find_offer(with_environment=False)
    except CredentialsError:
        return None
