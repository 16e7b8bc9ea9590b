"""The line that warns the user if events have waited in the spool for a long time.

Hooks fail silently, so nothing else would tell the user. The same line is shown if the plugin runs
without the package, because its events are then never applied.

    <home>/notice    <last check, seconds since 1970> <last notice, seconds since 1970>

At most one notice per day and home; the spool is listed at most every ten minutes. On the hook
path, at SessionStart only.
"""

import posix
import time

from hivepipe.home import overwrite_small, read_small

LATE_SECS = 600
LOOK_SECS = 600
DAY_SECS = 86_400
_FEW_DAYS_SECS = 6 * DAY_SECS


def notice(home: str, unfinished: str = "", before_ns: int | None = None) -> str:
    """Return the line, or ""; raise OSError if the time of the notice cannot be stored.

    `unfinished` is the plugin's message, which is shown without waiting for events to get old.
    `before_ns` is the time of the current event, which may be in the spool itself.
    """
    now = time.time()
    looked, shown = _read(f"{home}/notice")
    if unfinished:
        if 0 <= now - shown < DAY_SECS:
            return ""
        overwrite_small(f"{home}/notice", f"{int(now)} {int(now)}\n")
        return unfinished
    if 0 <= now - looked < LOOK_SECS or 0 <= now - shown < DAY_SECS:
        return ""
    end = f"{before_ns:020d}" if before_ns else "~"
    waiting = [name for name in _waiting(f"{home}/spool") if name < end]
    if not waiting:
        return ""
    since = int(min(waiting)[:20]) / 1e9
    is_late = now - since >= LATE_SECS
    overwrite_small(f"{home}/notice", f"{int(now)} {int(now if is_late else shown)}\n")
    if not is_late:
        return ""
    count = f"{len(waiting)} events wait" if len(waiting) > 1 else "1 event waits"
    return f"hivepipe: {count} on disk since {_moment(since, now)}; run `hivepipe doctor`"


def _read(path: str) -> tuple[float, float]:
    try:
        looked, shown = read_small(path).split("\n", 1)[0].split(" ")
        return float(looked), float(shown)
    except ValueError:
        return 0, 0


def _waiting(folder: str) -> list[str]:
    """Return the names of spooled events: twenty digits of time, `_`, pid."""
    try:
        names = posix.listdir(folder)
    except OSError:
        return []
    return [name for name in names if name.endswith((".json", ".raw")) and name[:20].isdigit()]


def _moment(since: float, now: float) -> str:
    """Return a moment in short form: 14:05, Tuesday, 3 November."""
    then, today = time.localtime(since), time.localtime(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M", then)
    if now - since < _FEW_DAYS_SECS:
        return time.strftime("%A", then)
    return f"{then.tm_mday} {time.strftime('%B', then)}"
