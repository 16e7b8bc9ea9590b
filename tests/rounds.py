"""How many rounds were asked for, of the tests that repeat themselves, and their seed."""

import os
from pathlib import Path


def asked(name: str) -> int | None:
    """Return the number that a variable holds, or None."""
    text = text_of(name)
    return int(text) if text else None


def text_of(name: str) -> str:
    """tests/conftest.py has forgotten every HIVEPIPE_ variable; the kernel has not.

    Of a process that xdist has started, it knows those of the one that started it.
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
    """HIVEPIPE_TEST_ROUNDS, else the small number."""
    return ASKED_ROUNDS or default
