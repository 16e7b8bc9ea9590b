"""Number of rounds and seed of the tests that repeat themselves."""

import os
from pathlib import Path


def asked(name: str) -> int | None:
    """Return the number in a variable, or None."""
    text = text_of(name)
    return int(text) if text else None


def text_of(name: str) -> str:
    """Return a variable from /proc, because tests/conftest.py removes HIVEPIPE_ variables.

    In a process that xdist started, the variable is in the environment of its parent.
    """
    for pid in ("self", os.getppid()):
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in environment:
            key, _, value = variable.partition(b"=")
            if key == name.encode():
                return value.decode()
    return ""


SEED = asked("HIVEPIPE_TEST_SEED") or 20261121
ASKED_ROUNDS = asked("HIVEPIPE_TEST_ROUNDS") or 0


def rounds(default: int) -> int:
    """Return HIVEPIPE_TEST_ROUNDS, or the default without it."""
    return ASKED_ROUNDS or default
