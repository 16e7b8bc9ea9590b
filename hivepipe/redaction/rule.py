r"""What a rule is, and the words its patterns share.

Patterns are RE2 over bytes, read as Latin-1: no look-around, no back-references, and no pattern
that takes more than linear time. The secret is the first group that took part in a match; a match
in which none did is passed over (this is how a pattern says "not in here").

The sieve is tried first, on the raw bytes of a line, JSON escapes and all: something no
spelling of the secret is without, except one with `\u00..` escapes, which are always looked into.

Examples are tests. `«...»` marks the secret; `<A20>` stands for 20 characters of an alphabet
(A letters and digits, l lower-case ones and digits, u upper-case ones and digits, a a-z and 2-7,
h hexadecimal, d digits, w base64url, b base64), so that no scanner takes this file for a leak.
"""

import re
from dataclasses import dataclass

REDACTED = "***REDACTED***"
EMAIL = "***EMAIL***"
SSH_KEY = "***SSH_KEY***"
AWS_KEY = "***AWS_KEY***"

# A token starts here: not inside a word, but right behind an escape of JSON or of a URL.
START = r"(?:^|[^0-9A-Za-z_]|\\[nrtbf]|%[0-9A-Fa-f]{2})"
# As JSON and as URLs write them too.
SLASH = r"(?:\\*/|%2[Ff])"
COLON = r"(?::|%3[Aa])"
BASE64 = r"(?:[A-Za-z0-9+/]|\\/|%2[BbFf])"
PADDING = r"(?:=|%3[Dd]){0,3}"
# Words and small numbers joined by dashes: `sk-learn-tutorial-2` is no key.
_WORD = r"(?:(?:[A-Z]?[a-z]+)*[0-9]{0,2}|[A-Z]+[0-9]{0,2}|[0-9]{1,4})"
_PLAIN = r"(?:(?:[A-Z]?[a-z]+)*|[A-Z]+|[0-9]{1,4})"
PLAIN_WORDS = rf"{_PLAIN}(?:[-_.]{_PLAIN})*"  # no name such as api03 or v2
WORDS = rf"{_WORD}(?:[-_.]{_WORD})*"
# A line break as it is or as JSON writes it, and the line number of `cat -n` after it.
BREAK = r"(?:\r?\n|\\+n)(?: *[0-9]+(?:\t|\\+t|\xe2\x86\x92))?"
GAP = rf"(?:[ \t\r]|\\+[rt]|{BREAK})*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of secret: how it is found, and what stands in its place."""

    name: str
    kind: str  # as the audit log counts it, in the singular
    pattern: str
    sieve: str
    is_token: bool = False  # the pattern is a form that needs no name beside it
    may_be_glued: bool = False  # and that no word in front of it hides
    replacement: str = REDACTED
    unless: str = ""  # a secret that matches this as a whole is none
    least_entropy: float = 0.0  # bits per character
    must_look_random: bool = False  # as no name or word does
    examples: tuple[str, ...] = ()
    counterexamples: tuple[str, ...] = ()


def token(
    name: str, shape: str, *examples: str, sieve: str = "", unless: str = "", but: str = ""
) -> Rule:
    """Make the rule of a token that its own form gives away; `but` is what it must leave alone."""
    return Rule(
        name=name,
        kind="API key",
        pattern=shape,
        is_token=True,
        may_be_glued=START not in sieve,
        sieve=sieve or _literal_start(shape),
        unless=unless,
        examples=examples,
        counterexamples=(but,) if but else (),
    )


def _literal_start(shape: str) -> str:
    """Return the literal text a pattern starts with, still escaped."""
    found = re.match(r"(?:[\w~@/ :-]|\\[.+-])+(?![*+?{])", shape)
    assert found, f"{shape} has no literal start: give a sieve"
    return found[0]
