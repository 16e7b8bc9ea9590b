"""The homes of the user, for pages that show several projects."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hivepipe import sender, settings
from hivepipe.config import setting_table
from hivepipe.config.config_file import Config
from hivepipe.db.location import database_path
from hivepipe.errors import HivepipeError
from hivepipe.files.change_stamp import stamp
from hivepipe.files.state_cache import StateCache
from hivepipe.home import (
    Place,
    environment_of,
    locate,
    project_of,
    read_record,
    record_path,
    short_hash,
)
from hivepipe.stack.project_records import record_files, records

if TYPE_CHECKING:
    from hivepipe.db.listings import Listings


class _OfHome(NamedTuple):
    settings: dict[str, str]
    database: Path


_OF_HOMES: StateCache[_OfHome] = StateCache(4096)
_KNOWN: StateCache[list["KnownHome"]] = StateCache(16)


@dataclass(frozen=True)
class KnownHome:
    """A home: a short key for URLs, its path, and its project ("" for a shared home)."""

    key: str
    home: str
    project: str

    def place(self) -> Place:
        """Return the home's locations; the state is `off` if the home or its project is off."""
        record = read_record(self.home)
        if self.project and read_record(self.project).get("state") == "off":
            record = {**record, "state": "off"}
        return Place(self.project or self.home, self.home, record)

    def database(self) -> Path:
        return _of_home(self.home).database

    @contextmanager
    def store(self) -> Iterator["Listings"]:
        """Open the home's database read-only, with its settings. Raise StoreError on failure."""
        from hivepipe.db.listings import listings  # noqa: PLC0415  an idle page needs no SQLite

        found = _of_home(self.home)
        with _applied(found.settings), listings(found.database) as store:
            yield store


def settings_of(home: str) -> AbstractContextManager[None]:
    """Apply the settings of a home in this thread, such as the path of its database."""
    return _applied(_of_home(home).settings)


@contextmanager
def _applied(values: dict[str, str]) -> Iterator[None]:
    before = settings.use_in_thread(values)
    try:
        yield
    finally:
        settings.use_in_thread(before)


def _of_home(home: str) -> _OfHome:
    """Return a home's settings and database path, cached until a file that sets them changes."""

    def read() -> _OfHome:
        values = _values(home, own)
        with _applied(values):
            return _OfHome(values, database_path(home))

    own = settings.of_one_home(sender.environment())
    files = (*setting_table.files(home), f"{home}/environment", record_path(home))
    return _OF_HOMES.get(home, (own, [stamp(path) for path in files]), read)


def _values(home: str, own: dict[str, str]) -> dict[str, str]:
    """Return the settings of a home: from its files and from its stack's environment.

    `own` has the variables of this process. These variables apply only to the home in which this
    process was started.
    """
    is_own = locate(".").home == home
    of_stack = own if is_own else settings.of_one_home(environment_of(home))
    return {**Config(home).of_files(), **of_stack}


def known_homes(here: Place) -> list[KnownHome]:
    """Return the registered homes and the home of `here`, sorted by project."""
    state = [(path, stamp(path)) for path in record_files()]
    return _KNOWN.get(here.home, state, lambda: _read_homes(here))


def _read_homes(here: Place) -> list[KnownHome]:
    paths = {record["home"] for record in records()} | {here.home}
    found = [KnownHome(short_hash(path), path, project_of(path)) for path in paths]
    return sorted(found, key=lambda known: (known.project or known.home, known.home))


def homes_named(here: Place, key: str) -> list[KnownHome]:
    """Return the home with this `key` (all homes for ""), or raise HivepipeError."""
    found = [known for known in known_homes(here) if key in ("", known.key)]
    if not found:
        raise HivepipeError(f"no project has the key {key}: /queues.json lists all keys")
    return found
