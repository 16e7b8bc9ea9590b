"""Operations of installed packages: the decorator, and the events that it accepts.

    from hivepipe import operation

    @operation(on=["SessionEnd"])
    def report(event): ...

The package names the function in its entry points (docs/operations.md).
"""

import logging
from collections.abc import Callable, Collection
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint, EntryPoints

GROUP = "hivepipe.operations"
MOST_RETRIES = 20
LONGEST_SECS = 600.0

# Operation whose commit starts installed operations -> the name of their event
EVENTS = {
    "start_session": "SessionStart",
    "activate_session": "UserPromptSubmit",
    "pause_session": "Stop",
    "start_agent": "SubagentStart",
    "finish_agent": "SubagentStop",
    "end_session": "SessionEnd",
}

_Function = TypeVar("_Function", bound=Callable[[dict[str, Any]], object])
_MARK = "_hivepipe_operation"

logger = logging.getLogger("hivepipe.operations")


class Declaration(NamedTuple):
    """The arguments of the decorator `operation`."""

    on: tuple[str, ...]
    retries: int
    timeout_secs: float


def operation(
    *, on: Collection[str], retries: int = 3, timeout_secs: float = 60.0
) -> Callable[[_Function], _Function]:
    """Declare an operation: its events, its retries after a failure, and the timeout of one run.

    Raise ValueError if an event is unknown, or a number is out of range.
    """
    named = (on,) if isinstance(on, str) else tuple(on)
    unknown = [name for name in named if name not in EVENTS.values()]
    if unknown or not named:
        known = ", ".join(EVENTS.values())
        raise ValueError(f"on names {', '.join(unknown) or 'no event'}; known events: {known}")
    if not 0 <= retries <= MOST_RETRIES:
        raise ValueError(f"retries is {retries}; 0 to {MOST_RETRIES} are possible")
    if not 0 < timeout_secs <= LONGEST_SECS:
        raise ValueError(f"timeout_secs is {timeout_secs}; up to {LONGEST_SECS:.0f} are possible")

    def declare(function: _Function) -> _Function:
        setattr(function, _MARK, Declaration(named, retries, timeout_secs))
        return function

    return declare


def declaration_of(function: object) -> Declaration:
    """Return the declaration of a function. Raise TypeError if the function is not decorated."""
    found = getattr(function, _MARK, None)
    if not isinstance(found, Declaration) or not callable(function):
        raise TypeError("it is not a function with @hivepipe.operation(on=[...])")
    return found


def installed_points() -> "list[EntryPoint]":
    """Return the entry points of operations, without packages whose metadata are damaged.

    If a package is installed twice, only the copy that Python imports is used. To find that copy,
    the package's metadata are parsed, so this is done only for packages with operations.
    """
    from importlib.metadata import distributions  # noqa: PLC0415  most direct events need none

    found: dict[str, EntryPoints] = {}
    for package in distributions():
        try:
            if package.entry_points.select(group=GROUP):
                imported = _imported(package)
                found.setdefault(imported.name, imported.entry_points.select(group=GROUP))
        except Exception as error:  # noqa: BLE001  importlib raises what its parser raises
            place = getattr(package, "_path", package)
            logger.warning("the entry points in %s cannot be read: %s", place, error)
    return [point for points in found.values() for point in points]


def _imported(package: "Distribution") -> "Distribution":
    """Return the copy of a package that Python imports."""
    from importlib.metadata import PackageNotFoundError, distribution  # noqa: PLC0415

    try:
        return distribution(package.name)
    except PackageNotFoundError:  # the folder of its metadata has another name
        return package


@cache
def installed_names() -> tuple[str, ...]:
    """Return the names of the installed operations, as of the first call in this process."""
    return tuple(sorted({point.name for point in installed_points()}))
