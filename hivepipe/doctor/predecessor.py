"""Checks for files and processes of the bash hooks that hivepipe replaces."""

from collections.abc import Iterator
from pathlib import Path

from hivepipe.db.foreign import count_foreign_rows, is_foreign, is_own
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.errors import MigrationError
from hivepipe.migration import record as records
from hivepipe.migration.home import find_home
from hivepipe.migration.hooks import command_of, find_hooks
from hivepipe.migration.processes import find_processes

_MIGRATE = "hivepipe migrate"


def database(facts: Facts) -> Iterator[Finding]:
    """Find the predecessor's database at the path of hivepipe's database."""
    path = database_path(facts.place.home)
    if is_foreign(path):
        text = f"{path} belongs to the bash hooks that hivepipe replaces: nothing can be stored"
        yield Finding(text, _MIGRATE)


def home(facts: Facts) -> Iterator[Finding]:
    """Find a home of the predecessor that was not migrated or that its hooks created again."""
    try:
        record = records.read(facts.place.project)
        found = find_home(facts.place.project, is_moved=bool(record and record.is_moved))
    except MigrationError as error:
        yield Finding(str(error), is_note=True)
        return
    if record and not record.is_complete:
        yield Finding("a migration from the bash hooks was started but not completed", _MIGRATE)
    if found:
        named = ", ".join(found.entries[:5])
        text = f"{found.folder} contains files of the bash hooks that hivepipe replaces ({named})"
        yield Finding(text, _MIGRATE)


def hooks(facts: Facts) -> Iterator[Finding]:
    """Find hooks of the predecessor, whose worker writes to the database without checks."""
    for folder in dict.fromkeys((facts.place.project, facts.folder)):
        for found in find_hooks(folder):
            if found.old:
                commands = ", ".join(dict.fromkeys(command_of(entry) for _, entry in found.old))
                yield Finding(f"{found.path} still runs old bash hooks: {commands}", _MIGRATE)
            for event, entry in found.doubtful:
                text = f"{found.path} runs {command_of(entry)} on {event}"
                yield Finding(f"{text}, which may write to .hive-mind: check it", is_note=True)


def rows(facts: Facts) -> Iterator[Finding]:
    """Find rows that another program, such as old hooks, wrote into the database."""
    path = database_path(facts.place.home)
    if not is_own(path):
        return
    with listings(path) as store:
        found = count_foreign_rows(store)
    if found:
        counts = ", ".join(f"{number} of {table}" for table, number in found.items())
        text = f"another program wrote rows into {path} within two days ({counts})"
        yield Finding(
            f"{text}, usually old bash hooks. A session of Claude Code that was open when they "
            "were removed runs them until it is restarted"
        )


def processes(facts: Facts) -> Iterator[Finding]:
    """Find a running worker of the predecessor."""
    for found in find_processes(facts.place.project, [Path(facts.place.home, "queue")]):
        yield Finding(f"{found.text} (pid {found.pid})", f"kill {found.pid}")
