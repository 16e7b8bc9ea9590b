"""The rights of workers: what they may do without asking. The user chooses them in config.toml.

Nobody answers the permission prompts of a worker. So a worker cannot do anything that needs a
prompt. Neither a project nor the environment can set these rights, because the settings of a
project can change the environment.
"""

import re
import shlex
from typing import NamedTuple

from hivepipe.errors import HiveError
from hivepipe.install.user_config import config_path
from hivepipe.settings import environment, of_files

SKIP_PERMISSIONS = "--dangerously-skip-permissions"
_GIT = ("git add", "git commit")
_PARK = "Skill(session:park)"  # a skill that the user may have; the prompts of workers name it
_ALLOWING = ("--allowedTools", "--allowed-tools")
_NAMES_RIGHTS = ("--permission-mode", *_ALLOWING, SKIP_PERMISSIONS)
_BASH = re.compile(r"\bBash\b(?:\(([^)]*)\))?")


class Rights(NamedTuple):
    """One choice of rights: its name, the flags of `claude` that grant it, and its meaning."""

    name: str
    flags: tuple[str, ...]
    meaning: str


_EDIT = ("--permission-mode", "acceptEdits", "--allowedTools", _PARK)
EDITS = Rights("edits", _EDIT, "change files in its project, and run no git: you commit")
COMMITS = Rights(
    "commits",
    (*_EDIT, *(f"Bash({command}:*)" for command in _GIT)),
    "change files in its project, `git add` and `git commit`",
)
ALL = Rights("all", (SKIP_PERMISSIONS,), f"whatever you may ({SKIP_PERMISSIONS})")
CHOICES = {each.name: each for each in (EDITS, COMMITS, ALL)}


def chosen_rights() -> str:
    """Return the rights that the user chose by `hive_rights` or by permission flags, or ""."""
    named = of_files("HIVEPIPE_HIVE_RIGHTS") or ""
    flags = _flags()
    return named or (rights_of(flags) if _name_rights(flags) else "")


def default_flags() -> tuple[str, ...]:
    """Return the flags of a worker's `claude`. Raise HiveError unless the user chose its rights."""
    for name in ("HIVEPIPE_HIVE_RIGHTS", "HIVEPIPE_HIVE_FLAGS"):
        if environment(name):
            setting = name.removeprefix("HIVEPIPE_").lower()
            raise HiveError(
                f"{name} is set in the environment, where a project can set it too: unset it, and "
                f"put {setting} into {config_path()}"
            )
    flags = _flags()
    if named := of_files("HIVEPIPE_HIVE_RIGHTS"):
        return (*CHOICES[named].flags, *flags)
    if _name_rights(flags):
        return flags
    raise HiveError(
        f"what may a worker do without asking? The user has to choose it once: `hivepipe hive "
        f"rights` in a terminal, or one line in {config_path()}: {config_lines()}"
    )


def config_lines() -> str:
    """Return a text with each line of config.toml that chooses rights, and its meaning."""
    return "; ".join(f'hive_rights = "{it.name}" ({it.meaning})' for it in CHOICES.values())


def rights_of(flags: tuple[str, ...]) -> str:
    """Return the name of the rights that flags of `claude` grant."""
    words = [word for flag in flags for word in flag.split("=", 1)]
    if SKIP_PERMISSIONS in words or "bypassPermissions" in words:
        return ALL.name
    return COMMITS.name if any(map(_lets_commit, _allowed(words))) else EDITS.name


def _allowed(words: list[str]) -> list[str]:
    """Return the patterns of the `Bash(PATTERN)` rules in `--allowedTools` flags.

    The rule `Bash` without a pattern allows all commands; its pattern is "".
    """
    option, found = "", []
    for word in words:
        if word.startswith("-"):
            option = word
        elif option in _ALLOWING:
            found += [rule[1] or "" for rule in _BASH.finditer(word)]
    return found


def _lets_commit(rule: str) -> bool:
    return rule in ("", "*") or "git commit".startswith(rule.rstrip(":* ")) or "git commit" in rule


def may_commit(flags: tuple[str, ...]) -> bool:
    return rights_of(flags) != EDITS.name


def _flags() -> tuple[str, ...]:
    text = of_files("HIVEPIPE_HIVE_FLAGS") or ""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise HiveError(f"hive_flags ({text!r}) cannot be read: {error}") from None


def _name_rights(flags: tuple[str, ...]) -> bool:
    return any(flag.partition("=")[0] in _NAMES_RIGHTS for flag in flags)
