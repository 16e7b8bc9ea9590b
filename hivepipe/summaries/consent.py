"""What the user agreed to for one home: who is asked, with which model. Without it nobody is.

It lies in the user's state folder: a home may lie in a repository, and nobody else's word counts.
"""

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from hivepipe import settings
from hivepipe.errors import SummaryError
from hivepipe.home import make_folders, read_small, short_hash, state_folder, write_small
from hivepipe.summaries import terms
from hivepipe.summaries.providers import Offer

OFF = "summaries by a language model are off: `hivepipe summaries enable`"


class Consent(NamedTuple):
    """Who may be sent what a session said."""

    kind: str
    model: str
    url: str
    given_at: str


def consent_path(home: str) -> Path:
    """Return where it is kept."""
    return Path(state_folder(), "summaries", short_hash(home))


def read_consent(home: str) -> Consent | None:
    """Return what was agreed to; None: nothing."""
    try:
        said = json.loads(read_small(str(consent_path(home))))
        return Consent(*(str(said[name]) for name in Consent._fields))
    except (ValueError, LookupError, TypeError):
        return None


def give_consent(home: str, offer: Offer, at: str) -> None:
    """Agree to this offer, as it is now; SummaryError: it cannot be noted."""
    path = str(consent_path(home))
    given = Consent(offer.provider.kind, offer.model, offer.url, at)
    try:
        make_folders(path.rsplit("/", 1)[0])
        write_small(path, json.dumps(given._asdict()) + "\n")
    except OSError as error:
        raise SummaryError(f"{path} cannot be written: {error.strerror}") from error


def withdraw_consent(home: str) -> None:
    """Take it back."""
    with suppress(FileNotFoundError):
        consent_path(home).unlink()


def is_enabled(home: str, *, with_environment: bool = True) -> bool:
    """May anybody be asked at all? A word that is neither yes nor no is taken as no.

    Without the environment it answers as a process of the stack would: it has none of this shell's.
    """
    word = _word(with_environment)
    return settings.means_yes(word) if word else read_consent(home) is not None


def _word(with_environment: bool) -> str:
    said = settings.variable if with_environment else settings.of_files
    return said("HIVEPIPE_SUMMARIES") or ""


def objection(home: str, offer: Offer, *, with_environment: bool = True) -> str:
    """Say why this offer may not be used; empty: it may."""
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
        f"agreed was {given.kind} with {given.model} at {given.url or 'claude'}, found was "
        f"{offer.provider.kind} with {offer.model} at {offer.url or 'claude'}: "
        "`hivepipe summaries enable` again"
    )
