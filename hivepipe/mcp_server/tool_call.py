"""A parsed call of a tool: the homes to read, and the validated arguments."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from hivepipe.errors import HivepipeError, RegistrationError, StoreError
from hivepipe.home import Place, absolute, nearest_record
from hivepipe.mcp_server.answer import short
from hivepipe.mcp_server.arguments import Values, stored_day
from hivepipe.reading.homes import KnownHome, known_homes, settings_of

_SHOWN = 8
_LONGEST_PROBLEM = 300
Found = TypeVar("Found")


@dataclass(frozen=True)
class ToolCall:
    """The homes to read, and the arguments. The home of the working folder comes first.

    `folder` is "" unless only one project of a shared home is to be read.
    """

    homes: list[KnownHome]
    folder: str
    values: Values

    def text(self, name: str) -> str:
        return str(self.values[name])

    def number(self, name: str) -> int:
        return int(self.values[name])

    def day(self, name: str) -> str:
        """Return a day argument as a time in the store's form, or raise ArgumentError."""
        return stored_day(name, self.text(name))

    def of_each(self, read: Callable[[KnownHome], Found]) -> tuple[list[Found], list[str]]:
        """Call `read` for each home. Return the results, and the errors of unreadable homes.

        Raise HivepipeError or OSError if the only home cannot be read.
        """
        found: list[Found] = []
        problems: list[str] = []
        for known in self.homes:
            try:
                with settings_of(known.home):
                    found.append(read(known))
            except (HivepipeError, OSError) as error:
                if len(self.homes) == 1:
                    raise
                problems.append(short(f"{known.project or known.home}: {error}", _LONGEST_PROBLEM))
        return found, problems


def parse_call(values: Values, here: Place) -> ToolCall:
    """Return the parsed call. Raise RegistrationError if `project` names no project, or several."""
    homes = sorted(known_homes(here), key=lambda known: known.home != here.home)
    name = str(values["project"])
    if not name:
        return ToolCall(homes, "", values)
    if name.startswith(("/", "~")):
        name, _ = nearest_record(os.path.realpath(absolute(name)))
    projects = [*_projects(homes)]
    found = [each for each in projects if name in (each[1], each[1].rpartition("/")[2])]
    if len(found) == 1:
        ((known, project),) = found
        return ToolCall([known], "" if known.project else project, values)
    raise RegistrationError(_problem(name, [project for _, project in found or projects]))


def _projects(homes: list[KnownHome]) -> Iterator[tuple[KnownHome, str]]:
    """Yield each home with its project; yield a shared home once for each of its projects."""
    for known in homes:
        if known.project:
            yield known, known.project
            continue
        with suppress(StoreError), known.store() as store:
            for project in sorted(set(store.project_of_sessions().values())):
                yield known, project


def _problem(name: str, projects: list[str]) -> str:
    some = ", ".join(projects[:_SHOWN]) + (" ..." if len(projects) > _SHOWN else "")
    if any(project.rpartition("/")[2] == name for project in projects):
        return f"{len(projects)} projects are called {name}; give the folder: {some}"
    return f"no project {name}; there are: {some}" if some else f"no project {name}"
