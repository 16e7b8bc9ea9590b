"""The status of an uplink, read by status, alerts, page and metrics.

<home>/uplink.json             the state of the connection, and the last change sent
<home>/uplink-archives.json    the last pass over the archives
"""

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hivepipe.db.changes import is_captured, lag_behind
from hivepipe.db.listings import read_store
from hivepipe.errors import TeamError
from hivepipe.files.typed_file import read_or, write_typed
from hivepipe.team import membership

FILE_NAME = "uplink.json"
_ARCHIVES_FILE = "uplink-archives.json"


@dataclass
class UplinkStatus:
    """`state` is connected, resting (all is sent), away or refused; `since` is in epoch seconds."""

    state: str = "away"
    since: float = 0.0
    error: str = ""
    mark: int = 0
    shipped_at: float = 0.0
    left_out: int = 0  # rows that the server cannot store


@dataclass
class PassResult:
    """The last pass over the archives: its error, and its end in epoch seconds (0: none yet)."""

    at: float = 0.0
    error: str = ""
    left_out: int = 0  # archives whose project is unknown


def read_status(home: str) -> UplinkStatus:
    return read_or(f"{home}/{FILE_NAME}", UplinkStatus, UplinkStatus())


def write_status(home: str, status: UplinkStatus) -> None:
    """Write the uplink's status; ignore a full disk, which must not stop the uplink."""
    with suppress(OSError):
        write_typed(f"{home}/{FILE_NAME}", status)


def note_all_sent(home: str, mark: int, left_out: int) -> None:
    """Write the status after a final send; a running uplink soon overwrites this status."""
    left_out += read_status(home).left_out
    now = time.time()
    write_status(home, UplinkStatus("resting", now, "", mark, now, left_out))


def write_pass_result(home: str, error: str = "", left_out: int = 0) -> None:
    """Write the result of a pass that ends now; ignore a full disk, as `write_status` does."""
    with suppress(OSError):
        write_typed(f"{home}/{_ARCHIVES_FILE}", PassResult(time.time(), error, left_out))


def uplink_report(home: str) -> dict[str, Any] | None:
    """Return the uplink of a home for `status --json`, or None if no team is joined."""
    if not membership.is_joined():
        return None
    status = read_status(home)
    archives = read_or(f"{home}/{_ARCHIVES_FILE}", PassResult, PassResult())
    try:
        known = membership.read()
    except TeamError as error:
        known, status.state, status.error = membership.Membership(), "refused", str(error)
    rows, secs = _lag(home, status.mark)
    return {
        "server": known.server,
        "member": known.member,
        "machine": known.machine,
        "state": status.state,
        "error": status.error,
        "since_secs": _secs_since(status.since),
        "shipped_secs": _secs_since(status.shipped_at),
        "lag_rows": rows,
        "lag_secs": secs,
        "left_out": status.left_out,
        "archives_secs": _secs_since(archives.at),
        "archives_error": archives.error,
        "archives_left_out": archives.left_out,
    }


def _secs_since(at: float) -> int | None:
    """Return the seconds since a time: None for 0, and 0 if the clock was set back since."""
    return max(round(time.time() - at), 0) if at else None


def _lag(home: str, mark: int) -> tuple[int | None, float | None]:
    """Return how many rows the server lacks, and the oldest such row's age in seconds.

    `mark` is the version of the last change on the server. Return (None, None) if the change
    capture has not begun.
    """
    lag = read_store(
        home, lambda store: lag_behind(store, mark) if is_captured(store) else None, None
    )
    return (lag.rows, round(lag.secs, 1)) if lag else (None, None)
