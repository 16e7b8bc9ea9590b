"""The list of checks; each is a function that yields findings."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hivepipe.doctor import (
    claude,
    disk,
    exports,
    hooks,
    operations,
    page,
    predecessor,
    search,
    stack,
    summaries,
    team,
)
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.errors import HivepipeError


class Check(NamedTuple):
    """A check and its name, which `--json` shows."""

    name: str
    look: Callable[[Facts], Iterator[Finding]]


CHECKS = (
    Check("hooks", hooks.registered),
    Check("plugin", hooks.plugged_in),
    Check("record", hooks.recorded),
    Check("hook-programs", hooks.programs),
    Check("hook-origin", hooks.origin),
    Check("hook-events", hooks.complete),
    Check("hook-events-unknown", hooks.unknown),
    Check("hook-age", hooks.outdated),
    Check("hook-by-name", hooks.shared),
    Check("hook-files", hooks.writable),
    Check("hook-version", hooks.stale),
    Check("hooks-twice", hooks.doubled),
    Check("python", hooks.interpreter),
    Check("old-hooks", predecessor.hooks),
    Check("old-home", predecessor.home),
    Check("old-database", predecessor.database),
    Check("old-worker", predecessor.processes),
    Check("old-rows", predecessor.rows),
    Check("settings", claude.readable),
    Check("managed-settings", claude.managed),
    Check("all-hooks-off", claude.switched_off),
    Check("trust", claude.trusted),
    Check("environment", claude.disabled),
    Check("ci", claude.elsewhere),
    Check("transcripts", claude.transcripts),
    Check("redis-server", stack.server),
    Check("redis-version", stack.server_version),
    Check("state", stack.state),
    Check("supervisor", stack.supervised),
    Check("autostart", stack.autostart),
    Check("redis", stack.answering),
    Check("programs", stack.programs),
    Check("reduced", stack.reduced),
    Check("version", stack.current),
    Check("spool", stack.spool),
    Check("spool-in-memory", stack.in_memory),
    Check("lost-events", stack.lost),
    Check("set-aside", stack.set_aside),
    Check("store", stack.store),
    Check("redis-memory", stack.redis_memory),
    Check("failed-jobs", stack.failed_jobs),
    Check("foreign-jobs", stack.foreign),
    Check("hook-errors", stack.errors),
    Check("home", disk.home),
    Check("owner", disk.owner),
    Check("modes", disk.modes),
    Check("state-folder", disk.state_folder_usable),
    Check("file-size", disk.file_size),
    Check("sockets", disk.runtime),
    Check("exports", exports.usable),
    Check("search-index", search.skipped),
    Check("disk", disk.room),
    Check("wal", disk.wal),
    Check("database", disk.database),
    Check("file-system", disk.file_system),
    Check("git", disk.tracked),
    Check("git-ignore", disk.unignored),
    Check("tree", disk.data_replaced),
    Check("config", disk.config),
    Check("asking", disk.asking),
    Check("credentials", summaries.credentials),
    Check("summaries", summaries.agreed),
    Check("team", team.joined),
    Check("operations", operations.loadable),
    Check("page", page.installed),
)


def examine(facts: Facts) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of every check, with the name of the check."""
    for check in CHECKS:
        try:
            for finding in check.look(facts):
                yield check.name, finding
        except HivepipeError as error:
            yield check.name, Finding(str(error))
        except Exception as error:  # noqa: BLE001  the other checks must still run
            yield check.name, Finding(f"this check itself failed: {type(error).__name__}: {error}")
