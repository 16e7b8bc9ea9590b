"""Keep hivepipe's settings file out of git by a line in the clone's own `.git/info/exclude`.

Claude Code adds such a line when it makes a `settings.local.json`, and hivepipe does the same. A
comment above the line marks it as hivepipe's. A line without the comment is the user's and is kept.
"""

import os
import re

from hivepipe import git

_MARK = "# hivepipe init"


def is_ignored(path: str) -> bool:
    """Tell whether git ignores this file already, or the file is outside of a clone."""
    return _git(path, "check-ignore", "-q", path) is not None or exclude_file(path) is None


def is_tracked(path: str) -> bool:
    """Tell whether this file is committed or staged."""
    return _git(path, "ls-files", "--error-unmatch", path) is not None


def exclude_file(path: str) -> str | None:
    """Return the exclude file of the clone that this file is in, or None outside of one."""
    found = _git(path, "rev-parse", "--git-path", "info/exclude")  # relative to the folder
    return os.path.realpath(os.path.join(_folder(path), found)) if found else None


def line_for(path: str) -> str:
    """Return the line that excludes this file, relative to the top of its working tree."""
    top = _git(path, "rev-parse", "--show-toplevel") or _folder(path)
    return "/" + re.sub(r"([*?\[\\])", r"\\\1", os.path.relpath(path, top))


def with_line(text: str, line: str) -> str:
    """Return the text with the line appended; a missing final line break stays missing."""
    ours = f"{_MARK}\n{line}"
    return f"{text}\n{ours}" if text and not text.endswith("\n") else f"{text}{ours}\n"


def without_line(text: str, line: str) -> str:
    """Return the text without the line: the inverse of `with_line`."""
    ours = f"{_MARK}\n{line}"
    if text.endswith(f"\n{ours}"):
        return text.removesuffix(f"\n{ours}")
    return text.replace(f"{ours}\n", "")


def _folder(path: str) -> str:
    """Return the parent folder of `.claude`, which may not exist yet."""
    return os.path.dirname(os.path.dirname(path))


def _git(path: str, *words: str) -> str | None:
    return git.answer(_folder(path), *words)
