"""The result of the last pass over the archives: `<home>/uplink-archives.json`."""

import time
from contextlib import suppress
from dataclasses import dataclass

from hivepipe.files.typed_file import read_or, write_typed

FILE_NAME = "uplink-archives.json"


@dataclass
class PassResult:
    """The last pass: its end in epoch seconds (0 if there was none) and its error."""

    at: float = 0.0
    error: str = ""


def read_result(home: str) -> PassResult:
    """Return the result of the last pass."""
    return read_or(f"{home}/{FILE_NAME}", PassResult, PassResult())


def write_result(home: str, error: str = "") -> None:
    """Record the end of a pass; ignore a full disk."""
    with suppress(OSError):
        write_typed(f"{home}/{FILE_NAME}", PassResult(time.time(), error))
