"""Redaction: replace the secrets in a text with placeholders."""

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hivepipe.redact.redactor import Redactor

# Most values in the store: ids, hashes, times; words and file names without digits. No secret of a
# built-in rule has this form, and this check costs a fifth of the sieve.
_PLAIN = re.compile(r"(?:instance-|task-agent-)?[0-9a-fTZ:.+_-]*|[a-z/.-]*").fullmatch


_in_force: "list[Redactor]" = []  # the redactor that `use` was given, or empty
_to_load: list[Callable[[], object]] = []  # what `use_later` was given, until it is called


def use(redactor: "Redactor") -> None:
    """Redact everything in this process with these rules from now on."""
    _in_force[:] = [redactor]
    _to_load.clear()


def use_later(load: Callable[[], object]) -> None:
    """Call this, which is to call `use`, before the first text is redacted."""
    _in_force.clear()
    _to_load[:] = [load]


def _rules() -> "Redactor":
    """Return the redactor in force."""
    for load in _to_load[:]:
        load()
    return _in_force[0] if _in_force else built_in()


def redact_text(text: str) -> str:
    """Return the text with every secret replaced that the rules in force find."""
    redactor = _rules()
    return text if redactor.is_built_in and _PLAIN(text) else redactor.redact_text(text)


def of_session() -> "Redactor":
    """Return a redactor of the rules in force that also finds, in any context, values found
    earlier.
    """
    return _rules().of_session()


def redact_line(line: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Redact one line of a transcript; return it with the name of a rule for each secret."""
    return _rules().redact_line(line)


def let_go() -> None:
    """Free the built-in rules until they are needed again: they grow to 7 MB with what they read.

    re2 keeps the last patterns, too.
    """
    built_in.cache_clear()
    if "re2" in sys.modules:
        sys.modules["re2"].purge()


@cache
def built_in() -> "Redactor":
    """Return the redactor of the built-in rules; compiling it takes a few milliseconds."""
    return import_module("hivepipe.redact.redactor").Redactor()  # type: ignore[no-any-return]
