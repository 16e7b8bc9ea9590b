"""Repair a worker's `transcript.jsonl` between two runs, so that each line is a JSON object.

A killed Claude Code leaves an incomplete line, and the next run would append to it. Another program
that writes to the same file may leave other text. Both kinds of text are moved to `stderr.log`.
"""

import os
from pathlib import Path

from hivepipe.errors import HiveError
from hivepipe.orchestrator.plain_file import lines_in, open_regular
from hivepipe.orchestrator.worker import Worker
from hivepipe.transcripts.lines import read_line

_CHUNK_BYTES = 1 << 20


def repair_transcript(worker: Worker, since: int = 0) -> int:
    """Repair the transcript from byte `since` on; return the size of the file, 0 if missing.

    The caller makes sure that no process writes to the transcript. Raise HiveError if it is not a
    regular file or cannot be written.
    """
    path = worker.transcript
    try:
        stray = _stray_lines(path, since)
        if stray:
            with open(worker.stderr, "ab", opener=open_regular) as log:
                log.writelines(line if line.endswith(b"\n") else line + b"\n" for _, line in stray)
            _remove(path, [(at, len(line)) for at, line in stray])
        return path.stat().st_size
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise HiveError(f"{error.filename or path}: {error.strerror}") from None


def _stray_lines(path: Path, since: int) -> list[tuple[int, bytes]]:
    """Return (offset, line) of non-JSON lines; add the newline that a last JSON line lacks."""
    found = []
    at = since
    with open(path, "rb", opener=open_regular) as file:
        file.seek(since)
        for line in lines_in(file, path):
            if read_line(line) is None:
                found.append((at, line))
            elif not line.endswith(b"\n"):
                with open(path, "ab", opener=open_regular) as end:
                    end.write(b"\n")
            at += len(line)
    return found


def _remove(path: Path, spans: list[tuple[int, int]]) -> None:
    """Remove byte ranges from a file. A single range at the end is cut off by truncation."""
    size = path.stat().st_size
    first, length = spans[0]
    if len(spans) == 1 and first + length == size:
        with open(path, "r+b", opener=open_regular) as file:
            file.truncate(first)
        return
    copy = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        _copy_without(path, copy, [*spans, (size, 0)])
        os.replace(copy, path)
    except OSError:  # a full disk must not keep a partial copy
        copy.unlink(missing_ok=True)
        raise


def _copy_without(path: Path, copy: Path, spans: list[tuple[int, int]]) -> None:
    with open(path, "rb", opener=open_regular) as old, open(copy, "wb", opener=open_regular) as new:
        at = 0
        for start, length in spans:
            old.seek(at)
            left = start - at
            while left > 0:
                chunk = old.read(min(left, _CHUNK_BYTES))
                new.write(chunk)
                left -= len(chunk)
            at = start + length
        new.flush()
        os.fsync(new.fileno())
