"""The list of checks, and the result of running them. A check yields findings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hivepipe.doctor import additions, archive, claude, disk, hooks, predecessor, stack
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.errors import HivepipeError
from hivepipe.home import data_folder, state_folder, user_folder
from hivepipe.install.users_folder import unusable_state_folder

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
    "hook-edited": hooks.edited,
    "hook-by-name": hooks.shared,
    "hook-files": hooks.writable,
    "hook-version": hooks.stale,
    "hooks-twice": hooks.doubled,
    "python": hooks.interpreter,
    "old-hooks": predecessor.hooks,
    "old-home": predecessor.home,
    "old-database": predecessor.database,
    "old-worker": predecessor.processes,
    "settings": claude.readable,
    "managed-settings": claude.managed,
    "all-hooks-off": claude.switched_off,
    "trust": claude.trusted,
    "unrecorded": claude.unrecorded,
    "folder": claude.reached,
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
    "memory-limit": disk.memory_limit,
    "sockets": disk.runtime,
    "exports": archive.folders,
    "search-index": archive.search_index,
    "disk": disk.room,
    "wal": disk.wal,
    "database": disk.database,
    "old-rows": predecessor.rows,  # after `database`, whose check fills the page cache
    "file-system": disk.file_system,
    "git": disk.tracked,
    "git-ignore": disk.unignored,
    "tree": disk.data_replaced,
    "config": disk.config,
    "asking": disk.asking,
    "credentials": additions.credentials,
    "summaries": additions.summaries,
    "team": additions.team,
    "operations": additions.operations,
    "page": additions.page,
}


@dataclass(frozen=True)
class Examination:
    """The result of all checks: where hooks are registered, and (check, finding) pairs."""

    hooks: list[str]
    found: list[tuple[str, Finding]]

    @property
    def healthy(self) -> bool:
        """Tell whether all findings are notes."""
        return all(finding.is_note for _, finding in self.found)

    def entry(self) -> dict[str, Any]:
        """Return the result in the form of `hivepipe doctor --json`."""
        findings = [
            {"check": name, "is_note": finding.is_note, "text": finding.text, "mend": finding.mend}
            for name, finding in self.found
        ]
        return {"hooks": self.hooks, "healthy": self.healthy, "findings": findings}


def examined(facts: Facts) -> Examination:
    """Run all checks, which change nothing."""
    return Examination(facts.who_runs_hooks, list(examine(facts)))


def examine(facts: Facts) -> Iterator[tuple[str, Finding]]:
    """Yield the findings of every check, with the name of the check."""
    is_closed = bool(unusable_state_folder())  # the check `state-folder` says so, once
    for name, look in CHECKS.items():
        try:
            for finding in look(facts):
                yield name, finding
        except HivepipeError as error:
            yield name, Finding(str(error))
        except Exception as error:  # noqa: BLE001  the other checks must still run
            if is_closed and isinstance(error, PermissionError) and _is_users(error.filename):
                continue
            yield name, Finding(f"this check itself failed: {type(error).__name__}: {error}")


def _is_users(path: object) -> bool:
    """Tell whether a path is in the user's HOME, state folder or data folder."""
    return str(path).startswith((f"{user_folder()}/", state_folder(), data_folder()))
