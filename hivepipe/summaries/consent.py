"""The user's consent for one home: provider, model and address. Without consent, no model is asked.

The consent is stored in the user's state folder. The home may be in a repository, whose author
cannot consent for the user.
"""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hivepipe import settings
from hivepipe.errors import SummaryError, os_error_as
from hivepipe.files.typed_file import read_or, write_typed
from hivepipe.home import make_folders, short_hash, state_folder
from hivepipe.summaries import terms
from hivepipe.summaries.providers import Offer

OFF = "summaries by a language model are off: `hivepipe summaries enable`"


@dataclass(frozen=True)
class Consent:
    """The provider, model and address to which the user allows sending the text of sessions."""

    kind: str
    model: str
    url: str
    given_at: str


def consent_path(home: str) -> Path:
    return Path(state_folder(), "summaries", short_hash(home))


def read_consent(home: str) -> Consent | None:
    """Return the user's consent for a home, or None without one."""
    return read_or(consent_path(home), Consent, None)


def give_consent(home: str, offer: Offer, at: str) -> None:
    """Record the consent to this offer; raise SummaryError if the consent cannot be written."""
    path = consent_path(home)
    with os_error_as(SummaryError, f"{path} cannot be written"):
        make_folders(str(path.parent))
        write_typed(path, Consent(offer.provider.kind, offer.model, offer.url, at))


def withdraw_consent(home: str) -> None:
    with suppress(FileNotFoundError):
        consent_path(home).unlink()


def is_enabled(home: str, *, with_environment: bool = True) -> bool:
    """Tell whether the user allows asking a model; a setting that is neither yes nor no means no.

    `with_environment=False` ignores this shell's variables, as processes of the stack do.
    """
    word = _word(with_environment)
    return settings.means_yes(word) if word else read_consent(home) is not None


def _word(with_environment: bool) -> str:
    read_setting = settings.variable if with_environment else settings.of_files
    return read_setting("HIVEPIPE_SUMMARIES") or ""


def objection(home: str, offer: Offer, *, with_environment: bool = True) -> str:
    """Return why a provider's offer must not be used, or "" if the user allows its use."""
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
        f"you agreed to {given.kind} with {given.model} at {given.url or 'claude'}, but now "
        f"it would be {offer.provider.kind} with {offer.model} at {offer.url or 'claude'}: "
        "`hivepipe summaries enable` again"
    )
