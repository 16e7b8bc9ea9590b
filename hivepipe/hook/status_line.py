"""The line below Claude Code's prompt, made of Claude Code's JSON and a file of the stack.

    <home>/status-line.json    written by the slow worker (hivepipe.worker.status_line_file)

The stack's file may be missing. Any field of Claude Code's JSON may be missing, too, because the
JSON differs between versions. `hook statusline COMMAND` first prints the output of COMMAND, which
is the user's earlier status line.
"""

import posix
import sys
import time
from _signal import ITIMER_REAL, SIG_DFL, SIGALRM, SIGPIPE, setitimer, signal

from hivepipe import home
from hivepipe.events.claude_code import CAP_PATH, Fields, clean, parse_object, scan_without_json
from hivepipe.hook.stdin import WAIT_SECS, read_event, stop_waiting

FILE = "status-line.json"
LARGEST = 1 << 16
_LARGEST_INPUT = 1 << 20
_SEPARATOR = " · "


def run(_event: str = "") -> None:
    """Print the user's earlier line, if any, and hivepipe's line, and end the process with 0."""
    try:
        scan_without_json()
        data = _read_in_time()
        if sys.argv[1:]:  # the other status line first, so that it is shown even if ours fails
            posix.write(1, _before(sys.argv[1], data))
        posix.write(1, line(data).encode("utf-8", "replace"))
    finally:
        posix._exit(0)


def _read_in_time() -> bytes:
    """Return what is on stdin within the time that a hook waits for its event."""
    signal(SIGALRM, lambda *_: stop_waiting())
    setitimer(ITIMER_REAL, WAIT_SECS, WAIT_SECS / 8)
    data = read_event().data
    setitimer(ITIMER_REAL, 0)
    return data


def line(data: bytes) -> str:
    """Return the line for Claude Code's JSON, or "" if it is empty or nothing is recorded here."""
    fields = parse_object(data, []) or {}
    place = home.locate(_folder(fields))
    if place.state == "off" or not posix.access(place.home, posix.F_OK):
        return ""
    found = _read_file(f"{place.home}/{FILE}")
    sessions = _object(found, "sessions")
    session = _object(sessions, str(fields.get("session_id")))
    others = [each for key, each in sessions.items() if key != fields.get("session_id")]
    waiting = len([1 for each in others if isinstance(each, dict) and each.get("waits")])
    parts = [
        _dollars(_object(fields, "cost").get("total_cost_usd", session.get("usd")), "session"),
        _dollars(found.get("today_usd") if found.get("day") == _today() else None, "today"),
        _context(_object(fields, "context_window"), session),
        _cache(session.get("cache_until")),
        _counted(waiting, "session waits", "sessions wait"),
        _counted(found.get("alerts"), "alert: hivepipe status", "alerts: hivepipe status"),
    ]
    text = _SEPARATOR.join([part for part in parts if part])
    return f"{text}\n" if text else ""


def _folder(fields: Fields) -> str:
    """Return the project's folder as Claude Code names it."""
    workspace = _object(fields, "workspace")
    for named in (workspace.get("project_dir"), workspace.get("current_dir"), fields.get("cwd")):
        if isinstance(named, str) and named.startswith("/"):
            return clean(named[:CAP_PATH])
    return posix.getcwd()


def _read(descriptor: int) -> bytes:
    """Read a descriptor to its end, up to a megabyte."""
    data = b""
    while len(data) < _LARGEST_INPUT:
        chunk = posix.read(descriptor, 1 << 16)
        if not chunk:
            break
        data += chunk
    return data


def _read_file(path: str) -> Fields:
    return parse_object(home.read_small(path, LARGEST).encode("utf-8", "surrogateescape"), []) or {}


def _object(fields: Fields, name: str) -> Fields:
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def _number(value: object) -> "float | None":
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number and 0 <= value < 1e12 else None  # type: ignore[return-value, operator]


def _dollars(value: object, of: str) -> str:
    number = _number(value)
    return "" if number is None else f"${number:.2f} {of}"


def _context(fields: Fields, session: Fields) -> str:
    """Return the used share of the context window, by Claude Code or the transcript, or ""."""
    percent = _number(fields.get("used_percentage"))
    tokens, window = _number(session.get("tokens")), _number(session.get("window"))
    if percent is None and tokens is not None and window:
        percent = 100 * tokens / window
    return "" if percent is None else f"{percent:.0f} % context"


def _cache(until: object) -> str:
    """Return the time left in the prompt cache, as `cache 4:59` or `cache over`; "" if unknown."""
    number = _number(until)
    if number is None:
        return ""
    left = int(number - time.time())
    return f"cache {left // 60}:{left % 60:02d}" if left > 0 else "cache over"


def _counted(value: object, one: str, more: str) -> str:
    number = _number(value)
    return f"{number:.0f} {one if number == 1 else more}" if number else ""


def _today() -> str:
    return time.strftime("%Y-%m-%d")


def _before(command: str, data: bytes) -> bytes:
    """Return the output of the user's earlier status line for this input, with a line break."""
    reading, writing = posix.pipe()
    if posix.fork() == 0:
        posix.dup2(writing, 1)
        _become_with_stdin(command, data)
    posix.close(writing)
    printed = _read(reading)
    return printed if not printed or printed.endswith(b"\n") else printed + b"\n"


def _become_with_stdin(command: str, data: bytes) -> None:
    """Replace this process by a shell command that gets `data` on stdin."""
    try:
        reading, writing = posix.pipe()
        if posix.fork() == 0:  # a child writes, because some commands do not read
            posix.close(reading)
            posix.write(writing, data)
            posix._exit(0)
        posix.close(writing)
        posix.dup2(reading, 0)
        signal(SIGPIPE, SIG_DFL)  # Python ignores SIGPIPE, and the command would inherit that
        posix.execv("/bin/sh", ["/bin/sh", "-c", command])
    finally:
        posix._exit(127)
