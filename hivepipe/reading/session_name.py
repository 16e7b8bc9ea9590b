"""The display name of a session: its title, the start of its first prompt, or its id."""

from hivepipe.db.listings import Entry

_LONGEST = 80
_ID = 8


def name_of(session: str, about: Entry | None) -> str:
    """Return the display name of a session; `about` is its entry in `Listings.titles`, or None."""
    known = about or {}
    text = known.get("objective") or known.get("prompt") or ""
    line = " ".join(text.split())
    return f"{line[:_LONGEST]}…" if len(line) > _LONGEST else line or session[:_ID]
