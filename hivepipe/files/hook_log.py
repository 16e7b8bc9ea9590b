"""hook-errors.log: the only place where hooks report errors.

Each line is one O_APPEND write of at most 500 bytes, so that lines of parallel hooks do not mix. A
line never contains text of a person or a model, because the log is not redacted. The writer rotates
the file. Hooks import this module, so it must stay small.
"""

import posix
import time

from hivepipe.home import open_or_make

LIMIT_BYTES = 500


def log_line(folder: str, event: str, level: str, message: str) -> None:
    """Append `[2025-01-10T14:30:00Z] [post-tool-use] [ERROR] message`; errors are ignored."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = f"[{stamp}] [{_kebab(event)}] [{level}] {message}".replace("\n", " ")
    data = line.encode("utf-8", "replace")[: LIMIT_BYTES - 1] + b"\n"
    try:
        descriptor = open_or_make(f"{folder}/hook-errors.log", posix.O_WRONLY | posix.O_APPEND)
        try:
            posix.write(descriptor, data)
        finally:
            posix.close(descriptor)
    except (OSError, ValueError):
        return


def _kebab(event: str) -> str:
    """Convert PostToolUse to post-tool-use."""
    out = "".join("-" + letter.lower() if letter.isupper() else letter for letter in event)
    return out.lstrip("-")
