"""Move the guard's notes of tool calls from the spool to Redis, each once.

    <folder>/call-notes.<time>    renamed (hivepipe.queue.spooled_notes); removed at the end
    hivepipe:notes:<time>         int, bytes of that file processed so far; set in the transaction
                                  that applies notes, removed with the file

If the file is renamed while a hook appends a note, the hook appends the note again. A duplicate
note changes nothing, because Redis knows the call by its id.
"""

import logging
from pathlib import Path
from typing import Any

import orjson
from redis import Redis

from hivepipe.files.regular_file import regular
from hivepipe.guard.client import (
    NOTE_FIELDS,
    SCRIPT,
    VERDICT_FIELDS,
    VERDICT_SCRIPT,
    record_elsewhere,
)
from hivepipe.home import Place, read_record
from hivepipe.queue.spool import all_folders
from hivepipe.queue.spooled_notes import set_aside_notes

AT_A_TIME = 200
KEPT_SECS = 30 * 86_400
# The number of arguments identifies the script of a line.
_SCRIPTS = {len(NOTE_FIELDS): SCRIPT, len(VERDICT_FIELDS): VERDICT_SCRIPT}

logger = logging.getLogger(__name__)


def replay_notes(connection: Redis, home: str) -> None:
    """Execute spooled notes in Redis. Raise RedisError on failure; the next call continues."""
    for folder in map(Path, all_folders(home)):
        for path in set_aside_notes(folder):
            _run_file(connection, path)
            record_elsewhere(Place(home, home, read_record(home)).runtime)


def _run_file(connection: Redis, path: Path) -> None:
    key = f"hivepipe:notes:{path.suffix[1:]}"
    found: Any = connection.get(key)
    offset = int(found or 0)
    try:
        with open(path, "rb", opener=regular) as file:
            file.seek(offset)
            while lines := file.readlines(AT_A_TIME * 300):
                offset += sum(map(len, lines))
                _run(connection, lines, key, offset)
        path.unlink()
    except OSError as error:
        logger.warning("%s stays: %s", path, error.strerror)
        return
    connection.delete(key)


def _run(connection: Redis, lines: list[bytes], key: str, offset: int) -> None:
    pipe = connection.pipeline()
    for script, arguments in filter(None, map(_read, lines)):
        pipe.eval(f"local reply\n{script}", 0, str(len(arguments)), *arguments)
    pipe.set(key, offset, ex=KEPT_SECS)
    pipe.execute()


def _read(line: bytes) -> tuple[str, list[str]] | None:
    """Return a note's script and arguments, or None for an empty or incomplete line."""
    if not line.strip():
        return None
    try:
        arguments = orjson.loads(line)
    except orjson.JSONDecodeError:
        arguments = None
    is_list = isinstance(arguments, list) and all(isinstance(word, str) for word in arguments)
    if is_list and len(arguments) in _SCRIPTS:
        return _SCRIPTS[len(arguments)], arguments
    logger.warning("a note of a tool call could not be read and is left out")
    return None
