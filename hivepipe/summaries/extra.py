"""The extra for providers over HTTP; `claude -p` does not need it."""

from importlib.util import find_spec

_LIBRARY = "pydantic_ai"


def missing_for(kind: str) -> str:
    """Return why a provider of this kind cannot be asked, or "" if it can."""
    if kind == "claude" or find_spec(_LIBRARY):
        return ""
    return "this provider needs an extra of hivepipe: pip install 'hivepipe[summaries]'"
