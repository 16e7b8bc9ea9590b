"""The homes of the user, for pages that show several projects."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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
    short_hash,
)
from hivepipe.stack.project_records import records

if TYPE_CHECKING:
    from hivepipe.db.listings import Listings

_SETTINGS: StateCache[dict[str, str]] = StateCache(4096)


@dataclass(frozen=True)
class KnownHome:
    """A home: a short key for URLs, its path, and its project ("" for a shared home)."""

    key: str
    home: str
    project: str

    def place(self) -> Place:
        """Return its locations; the state is off if the home or the project is switched off."""
        record = read_record(self.home)
        if self.project and read_record(self.project).get("state") == "off":
            record = {**record, "state": "off"}
        return Place(self.project or self.home, self.home, record)

    def database(self) -> Path:
        with settings_of(self.home):
            return database_path(self.home)

    @contextmanager
    def store(self) -> Iterator["Listings"]:
        """Open its database read-only, with its settings; raise StoreError if that fails."""
        from hivepipe.db.listings import listings  # noqa: PLC0415  an idle page needs no SQLite

        with settings_of(self.home), listings(database_path(self.home)) as store:
            yield store


@contextmanager
def settings_of(home: str) -> Iterator[None]:
    """Apply the settings of a home in this thread, such as the path of its database."""
    own = settings.of_one_home(sender.environment())
    stamps = [stamp(path) for path in (*setting_table.files(home), f"{home}/environment")]
    values = _SETTINGS.get(home, (own, stamps), lambda: _values(home, own))
    before = settings.use_in_thread(values)
    try:
        yield
    finally:
        settings.use_in_thread(before)


def _values(home: str, own: dict[str, str]) -> dict[str, str]:
    """Return the values of a home's files and of its stack's environment.

    `own` are the variables of this process, which count for the home where it was started.
    """
    is_own = locate(".").home == home
    of_stack = own if is_own else settings.of_one_home(environment_of(home))
    return {**Config(home).of_files(), **of_stack}


def known_homes(here: Place) -> list[KnownHome]:
    """Return the registered homes and the home of `here`, sorted by project."""
    paths = {record["home"] for record in records()} | {here.home}
    found = [KnownHome(short_hash(path), path, project_of(path)) for path in paths]
    return sorted(found, key=lambda known: (known.project or known.home, known.home))


def homes_named(here: Place, key: str) -> list[KnownHome]:
    """Return the home with this key, or all for ""; raise HivepipeError for an unknown key."""
    found = [known for known in known_homes(here) if key in ("", known.key)]
    if not found:
        raise HivepipeError(f"no project has the key {key}: /queues.json lists all keys")
    return found
