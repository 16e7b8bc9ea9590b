"""Delete `artifact-*` processes of pm2 that a session left running; off unless HIVEPIPE_PM2 is on.

pm2 belongs to the user and serves every session. A process is deleted only if its environment has
the id of this session or of an ended session. pm2's list is saved only if a process was deleted.
"""

import json
import logging
import subprocess
from typing import NamedTuple

from hivepipe import settings
from hivepipe.db.database import open_database
from hivepipe.db.sessions import is_ended
from hivepipe.programs import find_program

PREFIX = "artifact-"
PM2_SECS = 30.0

logger = logging.getLogger("hivepipe.tunnels")


def end_tunnels(home: str, session: str) -> None:
    """Delete the `artifact-*` processes of this and of ended sessions. A failure is only logged."""
    if not settings.switched_on("HIVEPIPE_PM2"):
        return
    pm2 = find_program("pm2")
    if pm2 is None:
        return
    try:
        gone = [entry for entry in _tunnels(pm2) if _may_go(home, entry, session)]
        for tunnel in gone:
            _run(pm2, "delete", str(tunnel.number))
            logger.info("deleted %s of session %s", tunnel.name, tunnel.session)
        if gone:
            _run(pm2, "save")
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        logger.warning("pm2: %s", error)


class _Tunnel(NamedTuple):
    number: int
    name: str
    session: str


def _tunnels(pm2: str) -> list[_Tunnel]:
    """Return pm2's `artifact-*` processes that have a session id in their environment."""
    found = []
    for entry in json.loads(_run(pm2, "jlist")):
        try:
            session = entry["pm2_env"].get("HIVEPIPE_SESSION_ID")
            if entry["name"].startswith(PREFIX) and session:
                found.append(_Tunnel(entry["pm_id"], entry["name"], session))
        except (AttributeError, KeyError, TypeError):  # not an entry as pm2 writes it
            continue
    return found


def _may_go(home: str, tunnel: _Tunnel, session: str) -> bool:
    if tunnel.session == session:
        return True
    with open_database(home) as db:
        return is_ended(db, tunnel.session)


def _run(pm2: str, *arguments: str) -> str:
    done = subprocess.run(
        [pm2, *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PM2_SECS,
        check=True,
    )
    return done.stdout
