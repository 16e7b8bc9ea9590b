"""Distinguish a random value from a name, a word or a label."""

import re
from itertools import pairwise

_RUNS = re.compile(rb"[a-z]+|[A-Z]+|[0-9]+|[^a-zA-Z0-9]+")


def looks_random(text: bytes) -> bool:
    """Tell whether the text changes between upper case, lower case and digits more than names do.

    A capital before lower case letters starts a word, and this change is not counted.
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
