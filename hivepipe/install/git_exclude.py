"""Keeps hivepipe's settings file out of git by a line in the clone's `.git/info/exclude`.

Claude Code adds such a line when it makes a `settings.local.json`, and hivepipe does the same. A
comment above the line marks it as hivepipe's line. A line without the comment belongs to the user
and is kept. An exclude file that hivepipe makes begins with a comment that says so. The file is
deleted when hivepipe's last line is removed from it.
"""

import os
import re
from collections.abc import Iterable

from hivepipe import git
from hivepipe.files.owner import another_owner
from hivepipe.install.edits import Edit, make, read, remove_if_empty
from hivepipe.settings import environment

_MARK = "# hivepipe init"
_MADE = "# hivepipe made this file"
_MADE_BOTH = f"{_MADE} and its folder"


def to_ignore(path: str) -> Edit | None:
    """Return the edit that makes git ignore this file, or None if no edit is needed.

    Also return None if the exclude file is another user's, or is a link, whose target other clones
    may use. Raise SettingsError if it cannot be changed.
    """
    named = None if is_ignored(path) else _named_exclude_file(path)
    if named is None or another_owner(named) or os.path.islink(named):
        return None
    exclude = os.path.realpath(named)
    text = read(exclude)
    before = _start_of(exclude) if text is None else text
    return Edit(exclude, text, with_line(before, line_for(path)))


def to_stop_ignoring(exclude: str, lines: Iterable[str]) -> Edit | None:
    """Return the edit that removes hivepipe's `lines`, or None if the file has none of them.

    Raise SettingsError if the file cannot be changed.
    """
    before = after = read(exclude) or ""
    for line in lines:
        after = without_line(after, line)
    return None if after == before else Edit(exclude, before, _left_of(after))


def undo(edit: Edit) -> None:
    """Make an edit that removes lines of hivepipe. Delete the file's folder if hivepipe made it."""
    make(edit)
    if edit.after is None and _MADE_BOTH in (edit.before or ""):
        remove_if_empty(os.path.dirname(edit.path))


def is_ignored(path: str) -> bool:
    """Tell whether git already ignores this file, or the file is outside of any clone."""
    return _git(path, "check-ignore", "-q", path) is not None or exclude_file(path) is None


def is_tracked(path: str) -> bool:
    """Tell whether this file is committed or staged."""
    return _git(path, "ls-files", "--error-unmatch", path) is not None


def exclude_file(path: str, variables: git.Variables = git.NONE) -> str | None:
    """Return the exclude file of the clone that contains this file, or None outside of clones."""
    named = _named_exclude_file(path, variables)
    return os.path.realpath(named) if named else None


def missing_line(path: str) -> tuple[str, str] | None:
    """Return the exclude file and the line to add to it, or None if git already ignores this file.

    `init` writes this line, unless the exclude file belongs to another user, is a link, or was
    found only by GIT_DIR. Without GIT_DIR, `uninstall` would not find the file. In a clone GIT_DIR
    is ignored, because in a git hook GIT_DIR names the hook's repository.
    """
    variables = {} if exclude_file(path) else _variables_of_git()
    untracked = ("ls-files", "--others", "--exclude-standard", "--", path)
    if not _git(path, *untracked, variables=variables):
        return None
    exclude = exclude_file(path, variables)
    return (exclude, line_for(path, variables)) if exclude else None


def line_for(path: str, variables: git.Variables = git.NONE) -> str:
    """Return the line that excludes this file, relative to the top of its working tree."""
    top = _git(path, "rev-parse", "--show-toplevel", variables=variables) or _folder(path)
    return "/" + re.sub(r"([*?\[\\])", r"\\\1", os.path.relpath(path, top))


def with_line(text: str, line: str) -> str:
    """Return the text with the line appended. A missing final line break stays missing."""
    ours = f"{_MARK}\n{line}"
    return f"{text}\n{ours}" if text and not text.endswith("\n") else f"{text}{ours}\n"


def without_line(text: str, line: str) -> str:
    """Return the text without the line. This is the inverse of `with_line`."""
    ours = f"{_MARK}\n{line}"
    if text.endswith(f"\n{ours}"):
        return text.removesuffix(f"\n{ours}")
    return text.replace(f"{ours}\n", "")


def _named_exclude_file(path: str, variables: git.Variables = git.NONE) -> str | None:
    """Return the exclude file under the name that git uses, perhaps a link, or None."""
    words = ("rev-parse", "--git-path", "info/exclude")
    found = _git(path, *words, variables=variables)  # this path is relative to the folder
    return os.path.join(_folder(path), found) if found else None


def _start_of(exclude: str) -> str:
    """Return the first line of an exclude file that hivepipe makes."""
    return f"{_MADE if os.path.isdir(os.path.dirname(exclude)) else _MADE_BOTH}\n"


def _left_of(text: str) -> str | None:
    """Return a text without lines of hivepipe, or None if the file is to be deleted."""
    others = re.sub(rf"^{_MADE}.*\n?", "", text, flags=re.MULTILINE)
    if others == text or _MARK in others:
        return text
    return others or None


def _variables_of_git() -> git.Variables:
    """Return the environment variables that name a repository."""
    named = {name: environment(name) for name in ("GIT_DIR", "GIT_WORK_TREE")}
    return {os.fsencode(name): os.fsencode(value) for name, value in named.items() if value}


def _folder(path: str) -> str:
    """Return the parent folder of the `.claude` that contains this file, or will contain it."""
    return os.path.dirname(os.path.dirname(path))


def _git(path: str, *words: str, variables: git.Variables = git.NONE) -> str | None:
    return git.answer(_folder(path), *words, variables=variables)
