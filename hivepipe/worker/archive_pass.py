"""Send the archives of a home once and exit: `python -I -m hivepipe.worker.archive_pass`.

This is a separate process, so that the uplink need not load the libraries for storage and
encryption. The exit code is 0 when all is sent, 3 if the team does not store archives, and 1 after
an error, which is logged.
"""

import logging
import sqlite3
import sys

from hivepipe.errors import HivepipeError
from hivepipe.team import membership
from hivepipe.team.archives.sending import Pass, Sent
from hivepipe.team.connection import connected
from hivepipe.team.uplink_status import write_pass_result
from hivepipe.worker.archive_passes import NOTHING_TO_DO
from hivepipe.worker.own_process import begin

logger = logging.getLogger("hivepipe.uplink")


def main() -> int:
    place, _ = begin("uplink")
    try:
        sent = send_once(place.home)
    except (HivepipeError, OSError, sqlite3.Error) as error:
        logger.warning("archives are not sent: %s", error)
        write_pass_result(place.home, str(error))
        return 1
    write_pass_result(place.home, left_out=sent.left_out if sent else 0)
    if sent is None:
        return NOTHING_TO_DO
    *counts, _ = sent
    if any(counts):
        logger.info(
            "archives: %d segments sent (%d bytes), %d archives dropped, %d objects deleted",
            *counts,
        )
    return 0


def send_once(home: str) -> Sent | None:
    """Send missing archives; return what was sent, or None without a store. May raise TeamError."""
    with connected(membership.machine_address()) as connection:
        made = Pass(connection, home, membership.read().share)
        return made.run() if made.has_work else None


if __name__ == "__main__":
    sys.exit(main())
