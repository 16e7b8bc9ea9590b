"""The list of checks; each is a function that yields findings."""

from collections.abc import Callable, Iterator

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

# The name of each check, which `--json` shows.
CHECKS: dict[str, Callable[[Facts], Iterator[Finding]]] = {
    "hooks": hooks.registered,
    "plugin": hooks.plugged_in,
    "record": hooks.recorded,
    "hook-programs": hooks.programs,
    "hook-origin": hooks.origin,
    "hook-events": hooks.complete,
    "hook-events-unknown": hooks.unknown,
    "hook-age": hooks.outdated,
    "hook-by-name": hooks.shared,
    "hook-files": hooks.writable,
    "hook-version": hooks.stale,
    "hooks-twice": hooks.doubled,
    "python": hooks.interpreter,
    "old-hooks": predecessor.hooks,
    "old-home": predecessor.home,
    "old-database": predecessor.database,
    "old-worker": predecessor.processes,
    "old-rows": predecessor.rows,
    "settings": claude.readable,
    "managed-settings": claude.managed,
    "all-hooks-off": claude.switched_off,
    "trust": claude.trusted,
    "environment": claude.disabled,
    "ci": claude.elsewhere,
    "transcripts": claude.transcripts,
    "redis-server": stack.server,
    "redis-version": stack.server_version,
    "state": stack.state,
    "supervisor": stack.supervised,
    "autostart": stack.autostart,
    "redis": stack.answering,
    "programs": stack.programs,
    "reduced": stack.reduced,
    "version": stack.current,
    "spool": stack.spool,
    "spool-in-memory": stack.in_memory,
    "lost-events": stack.lost,
    "set-aside": stack.set_aside,
    "store": stack.store,
    "redis-memory": stack.redis_memory,
    "failed-jobs": stack.failed_jobs,
    "foreign-jobs": stack.foreign,
    "hook-errors": stack.errors,
    "home": disk.home,
    "owner": disk.owner,
    "modes": disk.modes,
    "state-folder": disk.state_folder_usable,
    "file-size": disk.file_size,
    "sockets": disk.runtime,
    "exports": exports.usable,
    "search-index": search.skipped,
    "disk": disk.room,
    "wal": disk.wal,
    "database": disk.database,
    "file-system": disk.file_system,
    "git": disk.tracked,
    "git-ignore": disk.unignored,
    "tree": disk.data_replaced,
    "config": disk.config,
    "asking": disk.asking,
    "credentials": summaries.credentials,
    "summaries": summaries.agreed,
    "team": team.joined,
    "operations": operations.loadable,
    "page": page.installed,
}


def examine(facts: Facts) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of every check, with the name of the check."""
    for name, look in CHECKS.items():
        try:
            for finding in look(facts):
                yield name, finding
        except HivepipeError as error:
            yield name, Finding(str(error))
        except Exception as error:  # noqa: BLE001  the other checks must still run
            yield name, Finding(f"this check itself failed: {type(error).__name__}: {error}")
