"""Export a member's archives for an administrator: the list, and the lines as files."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hivepipe.errors import TeamError, os_error_as
from hivepipe.team.archives.reading import Contents
from hivepipe.team.connection import Connection

_LIST = "SELECT to_jsonb(a) AS row FROM hivepipe.archives a WHERE member = %s ORDER BY id"
_SEGMENTS = "SELECT * FROM hivepipe.archive_segments WHERE archive = %s ORDER BY number"


def exported_archives(
    connection: Connection, member: int, folder: Path | None
) -> Iterator[dict[str, Any]]:
    """Yield the list of a member's archives, and write their lines to <id>.jsonl in a folder.

    Files are not named after archives, because a machine chose those names. Raise TeamError if the
    key of the bucket or of the segments is missing, or a file cannot be written.
    """
    contents = Contents(connection, is_administrator=True)
    for found in connection.execute(_LIST, (member,)).fetchall():
        row = found["row"]
        segments = connection.execute(_SEGMENTS, (row["id"],)).fetchall()
        if folder:
            path = folder / f"{row['id']}.jsonl"
            _write(path, (contents.lines(row["name"], each) for each in segments))
            row["file"] = str(path)
        yield {"table": "archives", **row, "segments": segments}


def _write(path: Path, parts: Iterator[bytes]) -> None:
    """Write a new file that only this user can read, completely or not at all."""
    with os_error_as(TeamError, f"{path} cannot be written"):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            with open(number, "wb") as file:
                file.writelines(parts)
        except BaseException:
            path.unlink()
            raise
