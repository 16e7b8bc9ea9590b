"""The class of a rule, and patterns that the scanner uses. The rules are in rules.toml."""

from dataclasses import dataclass

REDACTED = "***REDACTED***"
EMAIL = "***EMAIL***"
SSH_KEY = "***SSH_KEY***"
AWS_KEY = "***AWS_KEY***"

# The start of a token: not inside a word, except after an escape of JSON or of a URL.
START = r"(?:^|[^0-9A-Za-z_]|\\[nrtbf]|%[0-9A-Fa-f]{2})"
# Words and small numbers joined by `-`, `_` or `.`: `sk-learn-tutorial-2` is not a key.
_WORD = r"(?:(?:[A-Z]?[a-z]+)*[0-9]{0,2}|[A-Z]+[0-9]{0,2}|[0-9]{1,4})"
WORDS = rf"{_WORD}(?:[-_.]{_WORD})*"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that finds secrets of one kind by a pattern and replaces them."""

    name: str
    kind: str  # the secret's name in the singular, for placeholders and the audit log
    pattern: str
    sieve: str  # matches the raw bytes of a secret however it is escaped
    is_token: bool = False  # the pattern alone identifies a secret, without a name before it
    may_be_glued: bool = False  # the secret is also found directly after a letter, digit or _
    replacement: str = REDACTED
    unless: str = ""  # a value that this pattern matches as a whole is not a secret
    not_in: str = ""  # a match that starts inside a match of this (<= 256 bytes) is ignored
    least_entropy: float = 0.0  # required entropy in bits per character
    must_look_random: bool = False  # the value must look more random than a name or word
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
