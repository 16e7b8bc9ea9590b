"""The result of the last pass over the archives: `<home>/uplink-archives.json`."""

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass

from hivepipe.home import read_small, write_small

FILE_NAME = "uplink-archives.json"


@dataclass
class PassResult:
    """The last pass: its end in epoch seconds (0 if there was none) and its error."""

    at: float = 0.0
    error: str = ""


def read_result(home: str) -> PassResult:
    """Return the result of the last pass."""
    try:
        return PassResult(**json.loads(read_small(f"{home}/{FILE_NAME}")))
    except (ValueError, TypeError):
        return PassResult()


def write_result(home: str, error: str = "") -> None:
    """Record the end of a pass; ignore a full disk."""
    with suppress(OSError):
        text = json.dumps(asdict(PassResult(time.time(), error)))
        write_small(f"{home}/{FILE_NAME}", f"{text}\n")
