"""Take secrets out of text: the token rules that need no context.

Every text that reaches the store passes through here (hivepipe.store.database). A rule is a
name, a pattern, and what stands in its place.
"""

import re

REDACTED = "***REDACTED***"

RULES = (
    (
        "private_key",  # to the end of the text where the end of the block was cut off
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?s:.*?)(?:-----END [A-Z0-9 ]*-----|\Z)",
        "***SSH_KEY***",
    ),
    ("aws_key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Za-z])", "***AWS_KEY***"),
    (
        "bearer",
        r"(?:(?<=\bbearer)|(?<=\bBearer)|(?<=\bBEARER))[ :=]{1,3}[A-Za-z0-9._~+/-]{8,}=*",
        f" {REDACTED}",
    ),
    # A digit or a capital: "sk-learn-tutorial-notebook" is no key.
    ("sk", r"\bsk[-_](?=[a-z_-]*[0-9A-Z])[A-Za-z0-9_-]{16,}", REDACTED),
    ("github", r"\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})", REDACTED),
    ("gitlab", r"\bglpat-[A-Za-z0-9_-]{16,}", REDACTED),
    ("slack", r"\bxox[a-z]-[A-Za-z0-9-]{8,}", REDACTED),
    ("google", r"\bAIza[A-Za-z0-9_-]{30,}", REDACTED),
)

_PLACEHOLDERS = {name: placeholder for name, _, placeholder in RULES}
_ANY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern, _ in RULES))
# No secret of these rules is without one of these: most texts are ids and times, and looking for
# ten short words takes a tenth of the pattern's time.
_MARKS = (
    "-----BEGIN ",
    "AKIA",
    "ASIA",
    "earer",
    "EARER",
    "sk-",
    "sk_",
    "gh",
    "glpat-",
    "xox",
    "AIza",
    "github_pat_",
)


def redact_text(text: str) -> str:
    """Return the text with every secret replaced by its placeholder."""
    for mark in _MARKS:
        if mark in text:
            return _ANY.sub(lambda found: _PLACEHOLDERS[found.lastgroup or ""], text)
    return text
