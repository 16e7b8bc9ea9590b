"""skill-usage.json and its index follow the store: after ten uses, or thirty seconds.

Whoever writes a use, by whatever path, need not know of it: what the files lack is seen in the
store. The lock's file holds the number of the last use that is in them.
"""

import logging
import os
import time
from datetime import UTC, datetime

from hivepipe.errors import StoreError
from hivepipe.export_folder import locked
from hivepipe.handlers.found_exports import USAGE, USAGE_INDEX, take_in_exports
from hivepipe.home import kept_folder, logs_folder
from hivepipe.hook_log import log_line
from hivepipe.ownership.manifest import Manifest
from hivepipe.retry import file_delay_secs
from hivepipe.skills.exports import index_json, usage_json
from hivepipe.skills.statistics import local_day
from hivepipe.stamps import Stamp, stamp
from hivepipe.store.listings import listings
from hivepipe.store.location import database_path
from hivepipe.store.skills import last_skill_use, skill_statistics, skill_uses_since

LOCK = "skill-usage"
USES = 10
AGE_SECS = 30.0
LOOK_EVERY_SECS = 5.0  # one reads as much as a short turn

logger = logging.getLogger("hivepipe.exports")


class SkillExports:
    """The two files of one home."""

    def __init__(self, home: str) -> None:
        """Nothing is looked at yet."""
        self._home = home
        self._exported: int | None = None  # the last use in the files, as far as it is known
        self._failures = 0
        self._next_look = 0.0
        self._looked_at: tuple[Stamp, ...] | None = None  # a store that the files lack nothing of

    def tidy(self) -> None:
        """Write the files if that is due; it looks now and then, and only if somebody wrote.

        A lock that was not had, and any other failure, is a warning and another try.
        """
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_EVERY_SECS
        try:
            if self._is_due():
                self.write()
        except StoreError:  # there is none yet, or the writer says what is wrong with it
            return
        except OSError as error:
            self._failures += 1
            delay = file_delay_secs(self._failures, is_disks_fault=True) or AGE_SECS
            self._warn(f"skills not exported, again in {delay:.0f} s: {error}")
            self._next_look = now + delay
        else:
            self._failures = 0

    def finish(self) -> None:
        """Write whatever the files still lack; a failure is a warning."""
        try:
            if self._pending()[0]:
                self.write()
        except (OSError, StoreError) as error:
            self._warn(f"skills not exported: {error}")

    def _warn(self, text: str) -> None:
        logger.warning("%s", text)
        if os.path.isdir(
            self._home
        ):  # else its project was deleted, and the log would make it anew
            log_line(logs_folder(self._home), "SkillExport", "WARNING", text)

    def write(self) -> None:
        """Write both files; OSError, StoreError.

        The store is read under the lock: nobody's older view replaces a newer one.
        """
        take_in_exports(self._home, kept_folder(self._home))
        with (
            locked(kept_folder(self._home), LOCK, Manifest(self._home)) as folder,
            listings(database_path(self._home)) as store,
        ):
            last = last_skill_use(store)
            skills = skill_statistics(store, local_day)
            folder.replace(USAGE, usage_json(skills))
            folder.replace(USAGE_INDEX, index_json(skills))
            folder.leave_mark(last)
        self._exported = last

    def _is_due(self) -> bool:
        path = database_path(self._home)
        stamps = (stamp(path), stamp(f"{path}-wal"))
        if stamps == self._looked_at:
            return False
        count, oldest = self._pending()
        self._looked_at = None if count else stamps
        if not count:
            return False
        age_secs = (datetime.now(UTC) - datetime.fromisoformat(oldest)).total_seconds()
        return count >= USES or not 0 <= age_secs < AGE_SECS

    def _pending(self) -> tuple[int, str]:
        """Return how many uses the files lack, and when the oldest of them was."""
        with listings(database_path(self._home)) as store:
            last = last_skill_use(store)
            if last and self._exported is None:
                with locked(kept_folder(self._home), LOCK, Manifest(self._home)) as folder:
                    self._exported = folder.mark()
            if last < (self._exported or 0):  # of another database, or of uses that were forgotten
                self._exported = 0
            return skill_uses_since(store, self._exported or 0)
