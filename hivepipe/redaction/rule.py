"""What a rule is, and the words that the scanner itself uses. rules.toml has the rules."""

from dataclasses import dataclass

REDACTED = "***REDACTED***"
EMAIL = "***EMAIL***"
SSH_KEY = "***SSH_KEY***"
AWS_KEY = "***AWS_KEY***"

# A token starts here: not inside a word, but right behind an escape of JSON or of a URL.
START = r"(?:^|[^0-9A-Za-z_]|\\[nrtbf]|%[0-9A-Fa-f]{2})"
# Words and small numbers joined by dashes: `sk-learn-tutorial-2` is no key.
_WORD = r"(?:(?:[A-Z]?[a-z]+)*[0-9]{0,2}|[A-Z]+[0-9]{0,2}|[0-9]{1,4})"
WORDS = rf"{_WORD}(?:[-_.]{_WORD})*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret: how it is found, and what stands in its place."""

    name: str
    kind: str  # as placeholders and the audit log name it, in the singular
    pattern: str
    sieve: str  # in every spelling of a match, in the raw bytes of a line
    is_token: bool = False  # the pattern is a form that needs no name beside it
    may_be_glued: bool = False  # and that no word in front of it hides
    replacement: str = REDACTED
    unless: str = ""  # a secret that matches this as a whole is none
    least_entropy: float = 0.0  # bits per character
    must_look_random: bool = False  # as no name or word does
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()
