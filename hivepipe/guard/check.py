"""Apply the rules to a tool call, to a prompt, or to a failed write.

Hooks import this module for events that can get an answer.
"""

import posix

from hivepipe import settings
from hivepipe.events import claude_code
from hivepipe.events.claude_code import Event, PreToolUse, ToolEvent
from hivepipe.guard.client import (
    OTHER,
    PROMPT,
    VERDICT_SCRIPT,
    Note,
    WatchedEvent,
    cancellation_path,
)
from hivepipe.guard.rules import CANCELLED, SHARED_DISK, Call, Limits, Verdict, judge, kind_of
from hivepipe.home import open_or_make, read_small, short_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hivepipe.guard.listed_calls import ListedCalls
    from hivepipe.guard.shared_disk import SharedDisk

MODES = ("off", "tasks", "all")


def check(watch: WatchedEvent, note_result: str) -> Verdict | None:
    """Return the verdict on an event, or None; `note_result` lists the latest calls."""
    event = watch.event
    if event.calls:
        return None if mode_of(watch) == "off" else _judged(note_result)
    if isinstance(event, ToolEvent) and not isinstance(event, PreToolUse):
        disk = _shared_disk(watch)
        hint = disk.hint(event) if disk else ""
        return Verdict(SHARED_DISK, 0, False, hint) if hint else None
    cancelled = cancellation(watch.home, watch.task)
    if cancelled is not None:
        return Verdict(CANCELLED, 0, isinstance(event, PreToolUse), cancelled)
    if not isinstance(event, PreToolUse) or mode_of(watch) == "off":
        return None
    disk = _shared_disk(watch)
    elsewhere = disk.verdict(event) if disk else None
    if elsewhere or not note_result:
        return elsewhere
    return _judged(note_result)


def early_verdict(watch: WatchedEvent, listed: "ListedCalls") -> tuple[bool, Verdict | None]:
    """Return (is_known, verdict) before Redis has counted the event.

    `is_known` is True if the answer is known already. A warning is not known yet, because only
    Redis knows whether it was given before. An answer about a cancelled task or the shared disk is
    not given early, either.
    """
    event = watch.event
    if event.calls:
        return mode_of(watch) == "off" or listed.has_results_of_all(watch), None
    if not isinstance(event, PreToolUse):
        return True, None
    if check(watch, ""):
        return False, None
    if mode_of(watch) == "off":
        return True, None
    calls = listed.up_to(watch)
    verdict = _judged(calls) if calls else None
    return bool(calls) and (verdict is None or denies(watch, verdict)), verdict


def _judged(note_result: str) -> Verdict | None:
    entries, now = note_result.split(" "), limits()
    if now.ignore_a_first and note_result.count(entries[-1][16:32]) == 1:
        return None  # most calls need no verdict
    return judge(last_calls(entries), now)


def denies(watch: WatchedEvent, verdict: Verdict) -> bool:
    """Tell whether the call is denied; otherwise its verdict is a warning."""
    mode = mode_of(watch)
    enforced = mode == "all" or (mode == "tasks" and bool(watch.task))
    return verdict.deny and (enforced or verdict.rule in (CANCELLED, SHARED_DISK))


def verdict_note(watch: WatchedEvent, verdict: Verdict, denied: bool) -> Note:
    """Return the note that stores a verdict; its result is "1" if the verdict must be shown."""
    subject = "" if verdict.deny else verdict.subject  # a denial is shown each time
    return VERDICT_SCRIPT, [*watch.keys, watch.id, "1" if denied else "0", subject]


def kind_of_call(event: Event) -> str:
    """Return the kind (see hivepipe.guard.client) of a call that is about to run, else OTHER."""
    if not isinstance(event, PreToolUse):
        return OTHER
    return kind_of(event.tool, event.command, event.tool in claude_code.EDIT_TOOLS, limits())


def last_calls(entries: list[str]) -> list[Call]:
    """Return the calls since the last prompt, the oldest first."""
    if PROMPT in entries:
        entries = entries[len(entries) - entries[::-1].index(PROMPT) :]
    return [Call(entry[16:32], entry[32:33], entry[33:]) for entry in entries]


def _shared_disk(watch: WatchedEvent) -> "SharedDisk | None":
    """Return the shared disk, or None if none is configured or the session has no profile."""
    root = settings.variable("HIVEPIPE_SHARED_ROOT")
    if not root or not watch.profile:
        return None
    from hivepipe.guard.shared_disk import SharedDisk  # noqa: PLC0415  few have one

    return SharedDisk(root, watch.profile, bool(read_small(silence_path(watch.home))))


# ---- settings, mode, cancellations


_limits: dict[tuple[str | None, ...], Limits] = {}  # one entry: most events have the same settings


def limits() -> Limits:
    """Return the limits and tool patterns of the guard's rules from the settings in force."""
    values = (
        settings.variable("HIVEPIPE_GUARD_LOOP"),
        settings.variable("HIVEPIPE_GUARD_ALTERNATION"),
        settings.variable("HIVEPIPE_GUARD_EMPTY_POLLS"),
        settings.variable("HIVEPIPE_GUARD_POLLS"),
        settings.variable("HIVEPIPE_GUARD_WAITING"),
    )
    if values not in _limits:
        _limits.clear()
        _limits[values] = Limits(*values)
    return _limits[values]


def guard_mode(home: str) -> str:
    """Return the mode (off, tasks or all) from `hivepipe guard mode`, else from the settings.

    The command takes precedence, because the environment of a running Claude Code cannot be
    changed.
    """
    for mode in (read_small(mode_path(home)).strip(), settings.variable("HIVEPIPE_GUARD")):
        if mode in MODES:
            return mode
    return settings.DEFAULTS["HIVEPIPE_GUARD"]


def mode_of(watch: WatchedEvent) -> str:
    """Return the guard's mode for an event. The mode is looked up once per event."""
    watch.mode = watch.mode or guard_mode(watch.home)
    return watch.mode


def silence_path(home: str) -> str:
    """Return the path of the file that exists while the shared disk does not answer."""
    return f"{home}/shared-root-silent"


def mode_path(home: str) -> str:
    """Return the path of the file that stores the mode set by `hivepipe guard mode`."""
    return f"{home}/guard-mode"


def cancellation(home: str, task: str) -> str | None:
    """Return time and reason of a task's cancellation from its file, or None if not cancelled."""
    return read_small(cancellation_path(home, task)) or None if task else None


def is_first_notice(home: str, session: str, cancelled: str) -> bool:
    """Tell whether a session was not told of this cancellation before, and record the notice."""
    path = f"{home}/tasks/told/{short_hash(session + cancelled)}"
    try:
        posix.close(open_or_make(path, posix.O_WRONLY | posix.O_EXCL))
    except FileExistsError:
        return False
    except OSError:  # a full disk: the warning is shown again
        return True
    return True
