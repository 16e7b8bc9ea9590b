"""session.yaml in `.claude-state`: the most recently active session of this project.

Only homes inside a project have this file, as the predecessor's homes had. The content comes from
the store. A file of this name that hivepipe did not write, or that was edited, stays unchanged.
"""

import logging
import time
from typing import Any

from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.errors import StoreError
from hivepipe.files.change_stamp import Stamp, stamps_of_database
from hivepipe.files.folders import Folder, make_root
from hivepipe.files.manifest import SESSION_FILE, Manifest
from hivepipe.home import kept_folder, tree_of

NAME = "session.yaml"
LOOK_EVERY_SECS = 5.0
_FIELDS = ("id", "started_at", "last_turn_ended_at", "ended_at", "status")

logger = logging.getLogger("hivepipe.exports")


class SessionExport:
    def __init__(self, home: str) -> None:
        self._home = home
        self._next_look = 0.0
        self._looked_at: tuple[Stamp, ...] | None = None

    def tidy(self) -> None:
        """Write session.yaml if the store has changed. After a failure, try again later."""
        now = time.monotonic()
        if now < self._next_look or not state_folder_of(self._home):
            return
        self._next_look = now + LOOK_EVERY_SECS
        stamps = stamps_of_database(database_path(self._home))
        if stamps != self._looked_at and self.finish():
            self._looked_at = stamps

    def finish(self) -> bool:
        """Write session.yaml now, if the home is in a project.

        Return False after an OSError, which is logged. A StoreError is ignored.
        """
        try:
            if state_folder_of(self._home):
                self._write()
        except StoreError:  # there is no database yet, or the writer reports its error
            return True
        except OSError as error:
            logger.warning("%s not exported: %s", NAME, error)
            return False
        return True

    def _write(self) -> None:
        with listings(database_path(self._home)) as store:
            rows = store.rows(_NEWEST, {})
        data = yaml_of(rows[0]) if rows else None
        make_root(kept_folder(self._home))
        manifest = Manifest(self._home)
        with Folder(state_folder_of(self._home)) as folder:
            before = folder.read(NAME) if folder.status(NAME) else None
            if folder.status(NAME) and not manifest.wrote(SESSION_FILE, before or b""):
                return
            if data is None:  # the session of this file was forgotten
                folder.remove(NAME)
                manifest.disown(SESSION_FILE)
            elif data != before:
                manifest.expect(SESSION_FILE, data, before)
                folder.replace(NAME, data)


_NEWEST = """
    SELECT id, created_at AS started_at, turn_ended_at AS last_turn_ended_at, ended_at, status
    FROM sessions WHERE status <> 'inferred' ORDER BY updated_at DESC, id LIMIT 1
"""


def state_folder_of(home: str) -> str:
    """Return `.claude-state` of a home inside a project, or "" for any other home."""
    tree = tree_of(home)
    return f"{tree}/.claude-state" if tree else ""


def yaml_of(session: dict[str, Any]) -> bytes:
    """Return a session as YAML. Ids and times need no escaping."""
    lines = [f'{name}: "{session[name]}"' if session[name] else f"{name}:" for name in _FIELDS]
    return "".join(f"{line}\n" for line in ("# written by hivepipe", *lines)).encode()
