"""The extra that asking a provider over HTTP needs; `claude -p` needs none."""

from importlib.util import find_spec

_LIBRARY = "pydantic_ai"


def missing_for(kind: str) -> str:
    """Return why a provider of this kind cannot be asked, or "" if it can."""
    if kind == "claude" or find_spec(_LIBRARY):
        return ""
    return "asking it needs an extra of hivepipe: pip install 'hivepipe[summaries]'"
