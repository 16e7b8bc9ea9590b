"""The line that warns the user if events have waited in the spool for a long time.

Hooks fail silently, so nothing else would tell the user. The same line is shown if the plugin runs
without the package, because its events are then never applied.

    <home>/notice    <last check, seconds since 1970> <last notice, seconds since 1970>

The file is in the runtime folder if it cannot be written in the home. At most one notice per day
and home is shown. While events wait, the spools are listed at most every ten minutes, otherwise at
each session's start. Hooks import this module at SessionStart only.
"""

import posix
import time

from hivepipe.home import read_small, spare_folders
from hivepipe.hook.instance import overwrite_small

LATE_SECS = 600
LOOK_SECS = 600
DAY_SECS = 86_400
_FEW_DAYS_SECS = 6 * DAY_SECS


def notice(home: str, runtime: str, unfinished: str = "", before_ns: int | None = None) -> str:
    """Return the line that warns the user of events that wait, or "".

    `unfinished` is the plugin's line that says how to complete the installation, or "". The
    plugin's line is returned even if no event waits. `before_ns` is the time of the current event.
    The current event may be in the spool already, so only earlier events are counted.
    """
    now = time.time()
    looked, shown = max(_read(home), _read(runtime))
    if 0 <= now - shown < DAY_SECS:
        return ""
    if unfinished:
        _store((home, runtime), now, now)
        return unfinished
    if 0 <= now - looked < LOOK_SECS:
        return ""
    end = f"{before_ns:020d}" if before_ns else "~"
    at_home, *elsewhere = [_waiting(each, end) for each in (home, *spare_folders(home, runtime))]
    waiting = sum(elsewhere, at_home)
    if not waiting:
        return ""
    since = int(min(waiting)[:20]) / 1e9
    is_late = now - since >= LATE_SECS
    _store((home, runtime), now, now if is_late else shown)
    if not is_late:
        return ""
    count = f"{len(waiting)} events wait" if len(waiting) > 1 else "1 event waits"
    where = f"{count} on disk" if at_home else f"{count} outside the home"
    return f"hivepipe: {where} since {_moment(since, now)}; run `hivepipe doctor`"


def _read(folder: str) -> tuple[float, float]:
    try:
        text = read_small(f"{folder}/notice") or "0 0"
        looked, shown = text.split("\n", 1)[0].split(" ")
        return float(looked), float(shown)
    except ValueError:
        return 0, 0


def _store(folders: tuple[str, ...], looked: float, shown: float) -> None:
    """Write the times to the first folder that accepts them, so that the notice is not repeated."""
    for folder in folders:
        try:
            posix.stat(folder)  # a missing folder is not created here
            overwrite_small(f"{folder}/notice", f"{int(looked)} {int(shown)}\n")
        except OSError:
            continue
        return


def _waiting(folder: str, end: str) -> list[str]:
    """Return the spooled events whose names (20 digits of time, `_`, pid) sort before `end`."""
    spool = f"{folder}/spool"
    try:  # `access` is faster than an error of `listdir`
        names = posix.listdir(spool) if posix.access(spool, posix.F_OK) else []
    except OSError:
        return []
    found = [name for name in names if name.endswith((".json", ".raw")) and name < end]
    return [name for name in found if name[:20].isdigit()]


def _moment(since: float, now: float) -> str:
    """Return a point in time in short form: 14:05, Tuesday, 3 November."""
    then, today = time.localtime(since), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M", then)
    if now - since < _FEW_DAYS_SECS:
        return time.strftime("%A", then)
    return f"{then.tm_mday} {time.strftime('%B', then)}"
