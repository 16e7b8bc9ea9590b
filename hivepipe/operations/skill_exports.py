"""skill-usage.json and its index, written after ten uses or thirty seconds.

The store shows which uses are missing from the files, so no handler has to notify this module. The
lock file has the number of the last exported use.
"""

import logging
import os
import time

from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.skills import last_skill_use, skill_statistics, skill_uses_since
from hivepipe.errors import StoreError
from hivepipe.files.change_stamp import Stamp, stamps_of_database
from hivepipe.files.export_folder import locked
from hivepipe.files.hook_log import log_line
from hivepipe.files.manifest import Manifest
from hivepipe.home import kept_folder, logs_folder
from hivepipe.jobs.retry import file_delay_secs
from hivepipe.operations.found_exports import USAGE, USAGE_INDEX, import_exports
from hivepipe.skills.exports import index_json, usage_json
from hivepipe.skills.statistics import local_day
from hivepipe.times import ns_of

LOCK = "skill-usage"
USES = 10
AGE_SECS = 30.0
LOOK_EVERY_SECS = 5.0  # seconds between checks: a check reads as much as a short turn

logger = logging.getLogger("hivepipe.exports")


class SkillExports:
    """The two skill exports of one home."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._exported: int | None = None  # the last exported use, if it is known
        self._failures = 0
        self._next_look = 0.0
        # Stamps of a store whose uses are all exported
        self._looked_at: tuple[Stamp, ...] | None = None

    def tidy(self) -> None:
        """Write the skill exports if that is due. The store is checked only if it has changed.

        A failure, such as a lock that another process holds, is logged as a warning and retried.
        """
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_EVERY_SECS
        try:
            if self._is_due():
                self.write()
        except StoreError:  # there is no database yet, or the writer reports its error
            return
        except OSError as error:
            self._failures += 1
            delay = file_delay_secs(self._failures, is_disk_error=True) or AGE_SECS
            self._warn(f"skills not exported, again in {delay:.0f} s: {error}")
            self._next_look = now + delay
        else:
            self._failures = 0

    def finish(self) -> None:
        """Write the uses that the skill exports lack. A failure is logged as a warning."""
        try:
            if self._pending()[0]:
                self.write()
        except (OSError, StoreError) as error:
            self._warn(f"skills not exported: {error}")

    def _warn(self, text: str) -> None:
        logger.warning("%s", text)
        # In a deleted project the log would create the folder again.
        if os.path.isdir(self._home):
            log_line(logs_folder(self._home), "SkillExport", "WARNING", text)

    def write(self) -> None:
        """Write both skill exports. Raise OSError or StoreError on failure.

        The store is read under the lock, so that older data never replace newer data.
        """
        import_exports(self._home, kept_folder(self._home))
        with (
            locked(kept_folder(self._home), LOCK, Manifest(self._home)) as folder,
            listings(database_path(self._home)) as store,
        ):
            last = last_skill_use(store)
            skills = skill_statistics(store, local_day)
            folder.replace(USAGE, usage_json(skills))
            folder.replace(USAGE_INDEX, index_json(skills))
            folder.store_number(last)
        self._exported = last

    def _is_due(self) -> bool:
        stamps = stamps_of_database(database_path(self._home))
        if stamps == self._looked_at:
            return False
        count, oldest = self._pending()
        self._looked_at = None if count else stamps
        if not count:
            return False
        age_secs = time.time() - ns_of(oldest) / 1e9  # an imported use may have no time
        return count >= USES or not 0 <= age_secs < AGE_SECS

    def _pending(self) -> tuple[int, str]:
        """Return how many uses the skill exports lack, and the time of the oldest of these uses."""
        with listings(database_path(self._home)) as store:
            last = last_skill_use(store)
            if last and self._exported is None:
                with locked(kept_folder(self._home), LOCK, Manifest(self._home)) as folder:
                    self._exported = folder.stored_number()
            # The exported number is of another database, or of a use that was forgotten.
            if last < (self._exported or 0):
                self._exported = 0
            return skill_uses_since(store, self._exported or 0)
