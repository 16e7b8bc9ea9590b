"""The form of a rule, and the words that the scanner uses. The rules are in rules.toml."""

from dataclasses import dataclass

REDACTED = "***REDACTED***"
EMAIL = "***EMAIL***"
SSH_KEY = "***SSH_KEY***"
AWS_KEY = "***AWS_KEY***"

# The start of a token: not inside a word, but right after an escape of JSON or of a URL.
START = r"(?:^|[^0-9A-Za-z_]|\\[nrtbf]|%[0-9A-Fa-f]{2})"
# Words and small numbers joined by dashes: `sk-learn-tutorial-2` is not a key.
_WORD = r"(?:(?:[A-Z]?[a-z]+)*[0-9]{0,2}|[A-Z]+[0-9]{0,2}|[0-9]{1,4})"
WORDS = rf"{_WORD}(?:[-_.]{_WORD})*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret: its pattern and its replacement."""

    name: str
    kind: str  # used in placeholders and the audit log, in the singular
    pattern: str
    sieve: str  # matches the raw bytes of a line in every spelling of a secret
    is_token: bool = False  # the pattern alone identifies a secret, without a name before it
    may_be_glued: bool = False  # also found right after other letters of a word
    replacement: str = REDACTED
    unless: str = ""  # text that matches this as a whole is no secret
    not_in: str = ""  # a match that starts inside a match of this, 256 bytes at most, is none
    least_entropy: float = 0.0  # bits per character
    must_look_random: bool = False  # more random than a name or word
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
