"""Tell a random value from a name, a word or a label."""

import re
from itertools import pairwise

_RUNS = re.compile(rb"[a-z]+|[A-Z]+|[0-9]+|[^a-zA-Z0-9]+")


def looks_random(text: bytes) -> bool:
    """Does the text change between capitals, small letters and digits as no name does?

    A capital in front of small letters begins a word, and counts as one with them.
    """
    kinds = [_kind(run[:1]) for run in _RUNS.findall(text)]
    changes = sum(
        one != other and "" not in (one, other) and (one, other) != ("A", "a")
        for one, other in pairwise(kinds)
    )
    size = sum(letter.isalnum() for letter in text.decode("latin-1") if letter < "\x80")
    return changes >= _LEAST_CHANGES * size and changes >= _FEWEST_CHANGES


_LEAST_CHANGES = 0.2
_FEWEST_CHANGES = 3


def _kind(letter: bytes) -> str:
    return "0" if letter.isdigit() else "A" if letter.isupper() else "a" if letter.islower() else ""
