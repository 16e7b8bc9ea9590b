"""Keeping our settings file out of git: a line in the clone's own `.git/info/exclude`.

Claude Code has git ignore a `settings.local.json` that it makes itself; for one that we make, we
see to it. The line above it says whose it is: without that, it is the user's and stays.
"""

import os
import re

from hivepipe import git

_MARK = "# hivepipe init"


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
    ours = f"{_MARK}\n{line}"
    return f"{text}\n{ours}" if text and not text.endswith("\n") else f"{text}{ours}\n"


def without_line(text: str, line: str) -> str:
    """Return the text without the line: exactly what `with_line` was given."""
    ours = f"{_MARK}\n{line}"
    if text.endswith(f"\n{ours}"):
        return text.removesuffix(f"\n{ours}")
    return text.replace(f"{ours}\n", "")


def _folder(path: str) -> str:
    """Return the folder in which `.claude` stands, which may not be there yet."""
    return os.path.dirname(os.path.dirname(path))


def _git(path: str, *words: str) -> str | None:
    return git.answer(_folder(path), *words)
