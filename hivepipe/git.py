"""Run git: read-only queries, which start no program that a repository's configuration names."""

import os
from collections.abc import Mapping
from pathlib import Path
from subprocess import CompletedProcess
from types import MappingProxyType

from hivepipe import settings
from hivepipe.errors import TreeError
from hivepipe.programs import find_program, run_to_end

ANSWER_SECS = 10.0
# With these and `_VARIABLES`, a repository's settings start no program, a missing object is not
# fetched, and a folder in a work tree that looks like a bare repository is not used as one.
_OPTIONS = (
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", "safe.bareRepository=explicit"),
)
_VARIABLES = {b"GIT_TERMINAL_PROMPT": b"0", b"GIT_ALLOW_PROTOCOL": b"", b"LC_ALL": b"C"}

Variables = Mapping[bytes, bytes]
NONE: Variables = MappingProxyType({})
_NO_REPOSITORY = b"not a git repository"


def ask(folder: str, *words: str, variables: Variables = NONE) -> CompletedProcess[bytes] | None:
    """Run git in a folder; return None if git is missing or does not answer in time.

    Only `variables` can select another repository, not the environment of this process.
    """
    git = find_program("git")
    if git is None:
        return None
    # This excludes GIT_DIR and similar variables, which git sets for its hooks, and prompts.
    env = settings.inherited() | _VARIABLES | dict(variables)
    return run_to_end([git, *_OPTIONS, "-C", folder, *words], ANSWER_SECS, env)


def answer(folder: str, *words: str, variables: Variables = NONE) -> str | None:
    """Return git's output without the last line break, or None if it fails."""
    result = ask(folder, *words, variables=variables)
    return os.fsdecode(result.stdout).rstrip("\n") if result and result.returncode == 0 else None


def tracked_files(folder: str, *paths: str) -> list[str]:
    """Return tracked files below the paths ([] outside a repository), or raise TreeError."""
    done = ask(folder, "ls-files", "-z", "--", *paths)
    if done and done.returncode == 0:
        return [name for name in os.fsdecode(done.stdout).split("\0") if name]
    if (done and _NO_REPOSITORY in done.stderr) or not is_below_a_repository(folder):
        return []
    why = os.fsdecode(done.stderr).strip() if done else "git is not installed, or does not answer"
    raise TreeError(f"git does not say what it tracks in {folder}: {why}")


def is_below_a_repository(folder: str) -> bool:
    """Tell whether a folder or a folder above it has a `.git`."""
    path = Path(os.path.realpath(folder))
    return any(os.path.lexists(each / ".git") for each in (path, *path.parents))
