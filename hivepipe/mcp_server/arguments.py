"""The arguments of a tool: their schema and validation."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from hivepipe.times import in_store_form

LONGEST = 1000  # characters of a text
MOST_SKIPPED = 100_000
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class ArgumentError(Exception):
    """An argument is missing, unknown or invalid; the caller gets the message."""


class Argument(NamedTuple):
    """One argument, which is required if `default` is None: a text, or an integer if `most` > 0."""

    description: str
    default: str | int | None = ""
    most: int = 0
    least: int = 1
    choices: tuple[str, ...] = ()


Values = dict[str, Any]


def schema_of(arguments: Mapping[str, Argument]) -> dict[str, Any]:
    needed = [name for name, each in arguments.items() if each.default is None]
    return {
        "type": "object",
        "properties": {name: _property(each) for name, each in arguments.items()},
        **({"required": needed} if needed else {}),
    }


def _property(argument: Argument) -> dict[str, Any]:
    about = {"description": argument.description} if argument.description else {}
    if argument.most:
        return {"type": "integer", **about}
    choices = {"enum": [*argument.choices]} if argument.choices else {}
    return {"type": "string", **choices, **about}


def checked(arguments: Mapping[str, Argument], given: Mapping[str, Any]) -> Values:
    """Return the value of every argument, or raise ArgumentError."""
    if unknown := sorted(set(given) - set(arguments)):
        known = ", ".join(arguments)
        raise ArgumentError(f"there is no argument {unknown[0][:100]!r}; there are {known}")
    return {name: _value(name, each, given.get(name)) for name, each in arguments.items()}


def _value(name: str, argument: Argument, given: object) -> str | int:
    if given is None or given == "":
        if argument.default is None:
            raise ArgumentError(f"{name} is missing")
        return argument.default
    if argument.most:
        if isinstance(given, float) and given.is_integer():  # 20.0 is an integer in JSON Schema
            given = int(given)
        if isinstance(given, bool) or not isinstance(given, int):
            raise ArgumentError(f"{name} must be a whole number")
        if not argument.least <= given <= argument.most:
            raise ArgumentError(f"{name} must be from {argument.least} to {argument.most}")
        return given
    if not isinstance(given, str) or len(given) > LONGEST:
        raise ArgumentError(f"{name} must be a text of at most {LONGEST} characters")
    if _LONE_SURROGATE.search(given):
        raise ArgumentError(f"{name} has a lone surrogate, which is not a character")
    if argument.choices and given not in argument.choices:
        raise ArgumentError(f"{name} must be one of {', '.join(argument.choices)}")
    return given


def stored_day(name: str, text: str) -> str:
    """Convert a local day or time to the store's form; "" stays "". May raise ArgumentError."""
    if not text:
        return ""
    try:
        return in_store_form(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        raise ArgumentError(f"{name} must be a day such as 2026-11-21") from None
