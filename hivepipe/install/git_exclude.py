"""Keeping our settings file out of git: a line in the clone's own `.git/info/exclude`.

Claude Code has git ignore a `settings.local.json` that it makes itself; for one that we make, we
see to it. The line is nobody else's: that file is never committed.
"""

import os
import re
import subprocess

_ANSWER_SECS = 10


def is_ignored(path: str) -> bool:
    """Does git leave this file out already? Also where it has no say."""
    return _git(path, "check-ignore", "-q", path) is not None or exclude_file(path) is None


def is_tracked(path: str) -> bool:
    """Has this file been committed, or added to be?"""
    return _git(path, "ls-files", "--error-unmatch", path) is not None


def exclude_file(path: str) -> str | None:
    """Return the exclude file of the clone that this file is in; None outside of one."""
    found = _git(path, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
    return os.path.realpath(found) if found else None


def line_for(path: str) -> str:
    """Return the line that excludes this file, counted from the top of its working tree."""
    top = _git(path, "rev-parse", "--show-toplevel") or _folder(path)
    return "/" + re.sub(r"([*?\[\\])", r"\\\1", os.path.relpath(path, top))


def with_line(text: str, line: str) -> str:
    """Return the text with the line at its end, which stays without a line break if it is."""
    return f"{text}\n{line}" if text and not text.endswith("\n") else f"{text}{line}\n"


def without_line(text: str, line: str) -> str:
    """Return the text without the line: exactly what `with_line` was given."""
    lines = text.splitlines(keepends=True)
    if lines and lines[-1] == line:
        return "".join(lines[:-1]).removesuffix("\n")
    return "".join(kept for kept in lines if kept != f"{line}\n")


def _folder(path: str) -> str:
    """Return the folder in which `.claude` stands, which may not be there yet."""
    return os.path.dirname(os.path.dirname(path))


def _git(path: str, *words: str) -> str | None:
    """Ask git; None if it says no. A repository's own settings get no program to run."""
    try:
        said = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-C", _folder(path), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_ANSWER_SECS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.rstrip("\n")
