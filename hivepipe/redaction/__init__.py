"""Take secrets out of text, and nothing else."""

import re
from functools import cache

from hivepipe.redaction.redactor import Redactor

# Most of what the store writes: ids, hashes, times; words, names of files without digits.
# No secret of a built-in rule looks like this, and the look costs a fifth of the sieve's.
_PLAIN = re.compile(r"(?:instance-|task-agent-)?[0-9a-fTZ:.+_-]*|[a-z/.-]*").fullmatch


def redact_text(text: str) -> str:
    """Return the text with every secret that the built-in rules know replaced."""
    return text if _PLAIN(text) else built_in().redact_text(text)


def redact_line(line: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Redact one line of a transcript; also return the names of the rules, one for each secret."""
    return built_in().redact_line(line)


@cache
def built_in() -> Redactor:
    """Return the redactor of the built-in rules; compiling it takes a few milliseconds."""
    return Redactor()
