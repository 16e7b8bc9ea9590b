"""Run a hook that records every step: launch_hook.py <event's name> <folder>."""

import posix
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[3]))

from hivepipe.hook import hand_over, intake, run, throttle
from hivepipe.queue import client, spool
from tests.faults.injections.marks import Marks, use_clock

marks = Marks(Path(sys.argv[2]))
use_clock(Path(sys.argv[2]), "hook")


def marked_after(owner: Any, name: str, step: str) -> None:
    before: Callable[..., Any] = getattr(owner, name)

    def and_mark(*arguments: Any, **keywords: Any) -> Any:
        found = before(*arguments, **keywords)
        marks.here(f"hook: {step}")
        return found

    setattr(owner, name, and_mark)


class MarkedSocket(client.socket):  # type: ignore[misc, name-defined]
    def sendall(self, data: bytes) -> None:
        super().sendall(data)
        marks.here("hook: sent to Redis")


def write_in_two(descriptor: int, data: memoryview) -> int:
    written = posix.write(descriptor, data[: len(data) // 2 or 1])
    marks.here("hook: half a file written")
    return written


client.socket = MarkedSocket  # type: ignore[misc]
spool.posix = SimpleNamespace(**{**vars(posix), "write": write_in_two})  # type: ignore[attr-defined]
marked_after(run.stdin, "read_event", "event read")
marked_after(throttle, "count_operation", "counted")
marked_after(hand_over, "_push", "Redis has it")
marked_after(spool, "_write", "file written")
marked_after(spool, "write_spool", "file in the spool")
marked_after(intake, "_keep_markers", "marker written")
run.run(sys.argv[1])
