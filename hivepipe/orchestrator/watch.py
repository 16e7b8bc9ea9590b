"""Watch a hive for changes, with kernel notifications (watchfiles) or by polling.

A notification only triggers a comparison of the files with `.hive/reported.json`, the list of
reported changes. So changes are not missed while no watcher runs, on a network file system (which
has no notifications), or when a file is replaced twice.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from watchfiles import watch

from hivepipe.files.typed_file import read_or
from hivepipe.home import write_small
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.status import Status
from hivepipe.orchestrator.worker import Worker

LOOK_EVERY_MS = 2000
_DEBOUNCE_MS = 20
_WHOLE_AFTER_SECS = 1.0  # time for an incomplete file to be completed
_LARGEST = 1 << 24


class Change(NamedTuple):
    """A new status of a worker, or the end of its process if `status` is None."""

    worker: Worker
    status: Status | None


class Watch:
    """Finds changes that were not reported yet."""

    def __init__(self, hive: Hive) -> None:
        """Load the changes that earlier watches reported."""
        self._hive = hive
        self._path = hive.root / "reported.json"
        self._reported = read_or(self._path, dict[str, str], {}, _LARGEST)

    def changes(self) -> Iterator[Change]:
        """Yield each change once, when it happens; the iterator does not end."""
        for _ in self._wakes():
            yield from self.unreported_changes()

    def unreported_changes(self) -> Iterator[Change]:
        """Yield unreported changes; one counts as reported when the caller asks for the next."""
        workers = self._hive.workers()
        for worker in workers:
            mark = _stamp_of(worker.status_file)
            if mark and self._reported.get(worker.id) != mark:
                status = worker.status()
                age_secs = time.time() - status.changed_ns / 1e9
                if status.problems and not status.word and age_secs < _WHOLE_AFTER_SECS:
                    continue
                yield Change(worker, status)
                self._report(worker.id, mark)
            ended = f"{worker.id} ended"
            run = worker.last_run()
            if run and run.has_ended and self._reported.get(ended) != str(run.number):
                yield Change(worker, None)
                self._report(ended, str(run.number))
        self._forget({worker.id for worker in workers})

    def _report(self, name: str, mark: str) -> None:
        self._reported[name] = mark
        write_small(str(self._path), json.dumps(self._reported))

    def _forget(self, there: set[str]) -> None:
        kept = {
            name: mark
            for name, mark in self._reported.items()
            if name.removesuffix(" ended") in there
        }
        if len(kept) < len(self._reported):
            self._reported = kept

    def _wakes(self) -> Iterator[None]:
        """Yield when to compare files: first at once, then on changes or after LOOK_EVERY_MS."""
        yield
        try:
            for _ in watch(
                self._hive.workers_folder,
                self._hive.state_folder,
                watch_filter=_is_watched,
                debounce=_DEBOUNCE_MS,
                step=_DEBOUNCE_MS,
                rust_timeout=LOOK_EVERY_MS,
                yield_on_timeout=True,
            ):
                yield
        except (OSError, RuntimeError):  # no inotify watches left, or an unsupported file system
            while True:
                time.sleep(LOOK_EVERY_MS / 1000)
                yield


def _is_watched(_change: object, path: str) -> bool:
    """Tell whether a path is watched. Transcripts are not watched: they grow all the time."""
    return path.endswith("/status.json") or "/runs/" in path


def _stamp_of(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_mtime_ns} {status.st_ino} {status.st_size}"
