"""The process that calls the function of an installed operation.

    python -I -m hivepipe.operations.custom_child    {"name": ..., "event": {...} or null} on stdin

The process writes one line to stdout, the function's declaration, before it calls the function. The
output of the function goes to stderr. A function that hangs, crashes or exhausts the memory harms
only this process.
"""

import ctypes
import json
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from hivepipe.operations.custom import GROUP, declaration_of, installed_points

_PR_SET_CHILD_SUBREAPER = 36


def main() -> None:
    """Load a function and print its declaration; call the function if it declares the event."""
    with suppress(OSError):  # only on Linux: if memory runs out, the kernel ends this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    if sys.platform == "linux":  # background processes of the function stay its children
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    request = json.load(sys.stdin)
    header = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        _run(request["name"], request["event"], header)
    except BaseException as error:  # noqa: BLE001  including SystemExit and KeyboardInterrupt
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}"
        sys.stderr.write(f"\n{place}: {type(error).__name__}: {error}\n")
        sys.stderr.flush()
        os._exit(1)


def _run(name: str, event: dict[str, Any] | None, header: Any) -> None:
    points = [point for point in installed_points() if point.name == name]
    if not points:
        raise LookupError(f"no installed package has the entry point {name!r} in {GROUP}")
    function = points[0].load()
    declaration = declaration_of(function)
    header.write(json.dumps(declaration._asdict()) + "\n")
    header.close()
    if event is not None and event["event"] in declaration.on:
        function(event)


if __name__ == "__main__":
    main()
