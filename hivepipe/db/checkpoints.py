"""The files that checkpoints name. A checkpoint is logged after some calls that change files."""

from typing import NamedTuple

from hivepipe.db.listings import Listings, prefix_bounds


class FileCheckpoint(NamedTuple):
    """One file of one session, and its last checkpoint."""

    path: str
    session: str
    last_at: str


def file_checkpoints(store: Listings, session: str = "") -> list[FileCheckpoint]:
    """Return the files with checkpoints, of the sessions whose id starts with `session`."""
    which = "AND session_id >= :prefix AND session_id < :behind" if session else ""
    sql = f"""
        SELECT CASE WHEN json_valid(data) THEN json_extract(data, '$.file_path') END AS path,
          session_id, MAX(created_at) AS last_at
        FROM session_logs WHERE message LIKE 'Auto-checkpoint: %' {which}
        GROUP BY 1, 2 HAVING path <> ''
    """
    rows = store.rows(sql, prefix_bounds(session))
    return [
        FileCheckpoint(str(row["path"]), row["session_id"] or "", row["last_at"] or "")
        for row in rows
    ]
