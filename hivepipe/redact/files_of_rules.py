"""Read the config files in which a user may have rules; load rules only when needed."""

import tomllib
from functools import partial
from importlib import import_module
from pathlib import Path

from hivepipe import redact
from hivepipe.config import setting_table
from hivepipe.errors import RedactionRuleError


def files_of_rules(home: str) -> dict[Path, str]:
    """Return config file -> its text; raise RedactionRuleError if a file cannot be read."""
    found = {}
    for path in map(Path, setting_table.files(home)):
        try:
            found[path] = setting_table.text_of(path)
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise RedactionRuleError(f"{path}: cannot be read: {error}") from error
    return found


def use_rules_when_needed(home: str) -> str:
    """Activate the rules of a home in this process; return an error or "".

    The user's rules are loaded at once. If there are none, the built-in rules are loaded when they
    are first needed, because loading them takes 50 ms.
    """
    if _has_rules(home):
        return _use_rules(home)
    redact.use_later(partial(_use_rules, home))
    return ""


def _has_rules(home: str) -> bool:
    """Tell whether a config file has rules of the user; return True for an unreadable file."""
    try:
        return any("redaction" in tomllib.loads(text) for text in files_of_rules(home).values())
    except (RedactionRuleError, tomllib.TOMLDecodeError, RecursionError):
        return True


def _use_rules(home: str) -> str:
    return str(import_module("hivepipe.redact.configured").use_rules(home))
