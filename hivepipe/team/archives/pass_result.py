"""What came of the last pass over the archives: `<home>/uplink-archives.json`."""

import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass

from hivepipe.home import read_small, write_small

FILE_NAME = "uplink-archives.json"


@dataclass
class PassResult:
    """The last pass: when it ended (seconds of the epoch, 0: never), and its error."""

    at: float = 0.0
    error: str = ""


def read_result(home: str) -> PassResult:
    """Return what came of the last pass."""
    try:
        return PassResult(**json.loads(read_small(f"{home}/{FILE_NAME}")))
    except (ValueError, TypeError):
        return PassResult()


def write_result(home: str, error: str = "") -> None:
    """Note the end of a pass; a full disk does not matter."""
    with suppress(OSError):
        text = json.dumps(asdict(PassResult(time.time(), error)))
        write_small(f"{home}/{FILE_NAME}", f"{text}\n")
