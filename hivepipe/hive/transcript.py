"""A worker's `transcript.jsonl` between two runs: every line a JSON object, ended by a newline.

A killed Claude Code leaves half a line, and the next run's first would be glued to it; another
program in the same pipe may say something in between. Both move to `stderr.log`.
"""

import os
from pathlib import Path

from hivepipe.hive.worker import Worker
from hivepipe.transcripts.lines import read_line

_PORTION = 1 << 20


def tidy(worker: Worker, since: int = 0) -> int:
    """Make the transcript pure from an offset on, and return its size; no process may write it."""
    path = worker.transcript
    if not path.exists():
        return 0
    stray = _stray_lines(path, since)
    if stray:
        with open(worker.stderr, "ab", opener=_private) as log:
            log.writelines(line if line.endswith(b"\n") else line + b"\n" for _, line in stray)
        _remove(path, [(at, len(line)) for at, line in stray])
    return path.stat().st_size


def _stray_lines(path: Path, since: int) -> list[tuple[int, bytes]]:
    """Return offset and bytes of each line that is none; a whole last one lacks a newline only."""
    found = []
    at = since
    with path.open("rb") as file:
        file.seek(since)
        for line in file:
            if read_line(line) is None:
                found.append((at, line))
            elif not line.endswith(b"\n"):
                with path.open("ab") as end:
                    end.write(b"\n")
            at += len(line)
    return found


def _remove(path: Path, spans: list[tuple[int, int]]) -> None:
    """Cut spans out, the rest staying as it is; of the end alone, in place."""
    size = path.stat().st_size
    first, length = spans[0]
    if len(spans) == 1 and first + length == size:
        os.truncate(path, first)
        return
    copy = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with path.open("rb") as old, open(copy, "wb", opener=_private) as new:
        at = 0
        for start, length in [*spans, (size, 0)]:
            old.seek(at)
            left = start - at
            while left > 0:
                portion = old.read(min(left, _PORTION))
                new.write(portion)
                left -= len(portion)
            at = start + length
        new.flush()
        os.fsync(new.fileno())
    os.replace(copy, path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
