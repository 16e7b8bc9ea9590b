"""Redaction: replace the secrets in a text with placeholders."""

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hivepipe.redact.redactor import Redactor

# Matches most values in the store: ids, hashes, times, words, and file names without digits. No
# secret of a built-in rule has this form. This check takes a fifth of the time of the sieve.
_PLAIN = re.compile(
    r"(?:instance-|task-agent-)?(?![0-9a-fTZ:.+_-]*(?:e2b_|fc-|1000\.[0-9a-f]{32}))[0-9a-fTZ:.+_-]*|[a-z/.-]*"
).fullmatch


_in_force: "list[Redactor]" = []  # the redactor passed to `use`, or empty
_to_load: list[Callable[[], object]] = []  # the function passed to `use_later`, until it is called


def use(redactor: "Redactor") -> None:
    """Use this redactor for all later texts of this process."""
    _in_force[:] = [redactor]
    _to_load.clear()


def use_later(load: Callable[[], object]) -> None:
    """Set a function that calls `use` with the rules; it runs before the first redaction."""
    _in_force.clear()
    _to_load[:] = [load]


def _rules() -> "Redactor":
    """Return the redactor in force, after calling the function set by `use_later`."""
    for load in _to_load[:]:
        load()
    return _in_force[0] if _in_force else built_in()


def redact_text(text: str) -> str:
    """Return the text with a placeholder for every secret that the active rules find."""
    redactor = _rules()
    return text if redactor.is_built_in and _PLAIN(text) else redactor.redact_text(text)


def of_session() -> "Redactor":
    """Return a redactor with the active rules. It recognises every secret that it found before."""
    return _rules().of_session()


def redact_line(line: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return a redacted transcript line, and the name of the rule for each secret in it."""
    return _rules().redact_line(line)


def free_memory() -> None:
    """Free the memory of the built-in rules until they are needed again.

    The automata of the rules grow to 7 MB with the texts that they read. The patterns that re2
    caches are freed, too.
    """
    built_in.cache_clear()
    if "re2" in sys.modules:
        sys.modules["re2"].purge()


@cache
def built_in() -> "Redactor":
    """Return the redactor of the built-in rules. Compiling it takes a few milliseconds."""
    return import_module("hivepipe.redact.redactor").Redactor()  # type: ignore[no-any-return]
