"""Stop the change capture of homes whose uplink does not run."""

import os
from contextlib import suppress

from hivepipe.db.changes import is_captured, stop_capture
from hivepipe.db.database import opened
from hivepipe.db.location import database_path
from hivepipe.errors import StoreError
from hivepipe.team import membership, uplink_status


def stop(home: str) -> bool:
    """Drop the triggers in a home's database; return True if the database has no triggers now.

    The settings of this process give the path. A database that cannot be used keeps its triggers.
    """
    if not database_path(home).exists():
        return True
    with suppress(StoreError), opened(home) as db:
        if is_captured(db):
            stop_capture(db)
        return True
    return False


def stop_without_team(home: str) -> None:
    """Stop the capture that an uplink began, if `team.json` was removed while no uplink ran.

    A capture that no uplink began stays: in CI, `drain --uplink` uses it without `team.json`.
    """
    status = f"{home}/{uplink_status.FILE_NAME}"
    if os.path.exists(status) and not membership.is_joined() and stop(home):
        os.unlink(status)
