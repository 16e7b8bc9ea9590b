"""What a stack consists of: the one table behind the supervisor's programs and the Procfile."""

from pathlib import Path
from typing import NamedTuple

import hivepipe


class Process(NamedTuple):
    """One long-lived process."""

    name: str
    script: str
    stop_secs: int
    priority: int  # starts in rising order, stops in falling order


PROCESSES = (
    Process("redis", "redis.py", stop_secs=10, priority=1),
    Process("writer", "writer.py", stop_secs=30, priority=10),
)


def root_folder() -> Path:
    """Return the folder of `hooks` and `workers`; in a wheel, of `_hooks` and `_workers`."""
    package = Path(hivepipe.__file__).parent
    return package if (package / "_workers").is_dir() else package.parent


def script_path(process: Process) -> Path:
    """Return where the entry point of this process lies."""
    root = root_folder()
    in_wheel = (root / "_workers").is_dir()
    return root / ("_workers" if in_wheel else "workers") / process.script


def procfile() -> str:
    """Return the text of the Procfile."""
    return "".join(f"{entry.name}: python -I workers/{entry.script}\n" for entry in PROCESSES)
