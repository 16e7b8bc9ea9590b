"""The user's consent for one home: provider, model and address. Without it no model is asked.

It is stored in the user's state folder and not in the home, which may be in a repository whose
author cannot consent for the user.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hivepipe import settings
from hivepipe.errors import SummaryError, os_error_as
from hivepipe.home import make_folders, read_small, short_hash, state_folder, write_small
from hivepipe.summaries import terms
from hivepipe.summaries.providers import Offer

OFF = "summaries by a language model are off: `hivepipe summaries enable`"


class Consent(NamedTuple):
    """The provider, model and address that may receive the text of sessions."""

    kind: str
    model: str
    url: str
    given_at: str


def consent_path(home: str) -> Path:
    return Path(state_folder(), "summaries", short_hash(home))


def read_consent(home: str) -> Consent | None:
    """Return the consent, or None if there is none."""
    try:
        fields = json.loads(read_small(str(consent_path(home))))
        return Consent(*(str(fields[name]) for name in Consent._fields))
    except (ValueError, LookupError, TypeError):
        return None


def give_consent(home: str, offer: Offer, at: str) -> None:
    """Record the consent to this offer; raise SummaryError if it cannot be written."""
    path = str(consent_path(home))
    given = Consent(offer.provider.kind, offer.model, offer.url, at)
    with os_error_as(SummaryError, f"{path} cannot be written"):
        make_folders(path.rsplit("/", 1)[0])
        write_small(path, json.dumps(given._asdict()) + "\n")


def withdraw_consent(home: str) -> None:
    with suppress(FileNotFoundError):
        consent_path(home).unlink()


def is_enabled(home: str, *, with_environment: bool = True) -> bool:
    """Tell whether a model may be asked; a setting that is neither yes nor no means no.

    `with_environment=False` ignores this shell's variables, as processes of the stack do.
    """
    word = _word(with_environment)
    return settings.means_yes(word) if word else read_consent(home) is not None


def _word(with_environment: bool) -> str:
    read_setting = settings.variable if with_environment else settings.of_files
    return read_setting("HIVEPIPE_SUMMARIES") or ""


def objection(home: str, offer: Offer, *, with_environment: bool = True) -> str:
    """Return why this offer may not be used, or ""."""
    if not is_enabled(home, with_environment=with_environment):
        return OFF
    refused = offer.trouble or terms.trouble()
    given = read_consent(home)
    if refused or given is None or settings.means_yes(_word(with_environment)):
        return refused
    found = (offer.provider.kind, offer.model, offer.url)
    if (given.kind, given.model, given.url) == found:
        return ""
    return (
        f"you agreed to {given.kind} with {given.model} at {given.url or 'claude'}, but found was "
        f"{offer.provider.kind} with {offer.model} at {offer.url or 'claude'}: "
        "`hivepipe summaries enable` again"
    )
