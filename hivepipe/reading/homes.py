"""The homes of the user, for pages that show several projects."""

from dataclasses import dataclass

from hivepipe.errors import HivepipeError
from hivepipe.home import Place, project_of, read_record, short_hash
from hivepipe.stack.project_records import records


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


def known_homes(here: Place) -> list[KnownHome]:
    """Return the registered homes and the home of `here`, sorted by project."""
    paths = {record["home"] for record in records()} | {here.home}
    found = [KnownHome(short_hash(path), path, project_of(path)) for path in paths]
    return sorted(found, key=lambda known: (known.project or known.home, known.home))


def homes_named(here: Place, key: str) -> list[KnownHome]:
    """Return the home with this key, or all for ""; raise HivepipeError for an unknown key."""
    found = [known for known in known_homes(here) if key in ("", known.key)]
    if not found:
        raise HivepipeError(f"no home has the key {key}: see `hivepipe stacks`")
    return found


def home_named(here: Place, key: str) -> KnownHome:
    """Return the home with this key; raise HivepipeError for an unknown key."""
    return next(known for known in homes_named(here, key) if known.key == key)
