"""Identify the Claude Code process of a hook, and its session.

Hooks have no terminal. Claude Code is the hook's parent. If the parent is a shell, Claude Code is
the first `claude`, `node` or other host above the shell. If there is none, Claude Code is the first
process above that is not a shell. If Claude Code was killed, the hook's own process is used
instead. The hook's process ends at once, and the instance ends with it. `instances/<key>` stores
the instance:

    id=instance-<epoch of its start>-<8 hex>
    pid=, started=       the process; another start time with the same pid is a new instance
    session=             the session of its newest event (the marker)
    ended=1              that session has ended for this instance; the next event reopens it
    end                  the end of the text; the rest of the file is older

`instances/<key>.settings` records that hooks of Claude Code's settings ran for the instance, not
only the plugin's hooks.

Hooks import this module.
"""

import posix
import time
from _blake2 import blake2b

from hivepipe import sender
from hivepipe.events.claude_code import Event, SessionEnd, valid_id
from hivepipe.home import open_or_make, read_small
from hivepipe.settings import of_this_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hivepipe.events.job_plan import Context

_SHELLS = ("sh", "dash", "bash", "zsh", "ksh", "ash", "fish", "busybox", "env")
_HOSTS = ("claude", "node", "codex", "copilot")
# Like pid 1, these programs adopt processes whose parent has ended.
_INITS = ("systemd", "init", "tini", "docker-init", "dumb-init", "catatonit")
_STEPS = 4


def this_machine() -> tuple[str, str, str]:
    """Return host, boot and pid namespace, in which a pid is unique; "" if unknown (macOS)."""
    try:
        pid_space = posix.readlink("/proc/self/ns/pid")
    except OSError:
        pid_space = ""
    boot = read_small("/proc/sys/kernel/random/boot_id").strip()
    return posix.uname().nodename, boot, pid_space


class Instance:
    """A running Claude Code process. `session` is "" if no session is stored for it."""

    __slots__ = ("has_ended", "id", "key", "pid", "session", "started")

    def __init__(
        self, key: str, id: str, pid: int, started: str, session: str, has_ended: bool = False
    ) -> None:
        """`started` is the kernel's start time of the process in clock ticks, or "" on macOS.

        `has_ended` is True if the session has ended for this instance.
        """
        self.key = key
        self.id = id
        self.pid = pid
        self.started = started
        self.session = session
        self.has_ended = has_ended


def this_instance(home: str) -> Instance:
    """Return the Claude Code process of this hook, with the data stored for that process."""
    named = of_this_process("HIVEPIPE_INSTANCE_ID")
    if named:
        return _named_instance(home, named)
    pid, started = _claude_process()
    key = str(pid)
    known = remembered(home, key)
    if known.get("id") and known.get("pid") == key and known.get("started", "") == started:
        return Instance(key, known["id"], pid, started, known["session"], "ended" in known)
    digest = blake2b(f"{pid} {started}".encode(), digest_size=4).hexdigest()
    return Instance(key, f"instance-{_start_epoch(started)}-{digest}", pid, started, "")


def identify(context: "Context", event: Event, home: str) -> Instance:
    """Add this hook's Claude Code process and its session to the context; return the process."""
    instance = this_instance(home)
    own = context.own_session = context.own_session or instance.session
    context.session = own or marked_session(home, instance)
    # A second SessionEnd is a duplicate; any other event after the end of the session reopens it.
    comes_back = instance.has_ended and event.name != "SessionEnd"
    context.enters_session = bool(own) and (own != instance.session or comes_back)
    context.instance = instance.id
    context.pid, context.pid_started = instance.pid, instance.started
    if context.enters_session or event.name == "SessionStart":
        context.machine = this_machine()
    return instance


def had_no_session(event: Event, instance: Instance, home: str) -> bool:
    """Tell whether this is a SessionEnd without a session, as `claude plugin` fires it.

    The reason of the event is `other`, and its transcript does not exist. A session that began
    before the hooks were installed does have a transcript. If no marker can be written, a missing
    marker says nothing, and the disk may have refused the transcript, too.
    """
    if instance.session or not isinstance(event, SessionEnd):
        return False
    if event.reason != "other" or not event.transcript_path:
        return False
    try:
        posix.stat(event.transcript_path)
    except (OSError, ValueError):
        return _can_remember(home, instance)
    return False


def _can_remember(home: str, instance: Instance) -> bool:
    """Tell whether a marker can be written, by writing and removing one without a session."""
    path = f"{home}/instances/{instance.key}"
    try:
        overwrite_small(path, "end\n")
    except OSError:
        return False
    remove(path)
    return True


def _named_instance(home: str, named: str) -> Instance:
    """Return an instance whose id `named` was set by the launcher (a test, container, wrapper)."""
    named = (
        valid_id(named)
        or "instance-"
        + blake2b(named.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    )
    known = remembered(home, named)
    return Instance(named, named, sender.parent(), "", known["session"], "ended" in known)


def remember(home: str, instance: Instance, session: str, by_plugin: bool = False) -> None:
    """Write the instance's marker, `sessions/.session_<pid>` and `.active_session`.

    Raise OSError if a file cannot be written.
    """
    process = f"pid={instance.pid}\nstarted={instance.started}"
    text = f"id={instance.id}\n{process}\nsession={session}\nend\n"
    files = (
        (f"{home}/instances/{instance.key}", text),
        (f"{home}/sessions/.session_{instance.pid}", f"{session}\n"),
        (f"{home}/.active_session", f"{session}\n"),
        *([] if by_plugin else [(_settings_marker(home, instance), f"{process}\n")]),
    )
    for path, content in files:
        overwrite_small(path, content)


def overwrite_small(path: str, text: str) -> None:
    """Write a small file of hivepipe in place, then cut off the rest of a longer old text.

    This takes a third of the time of a rename, because a rename makes ext4 write the file at once.
    Between the two steps a reader sees the whole new text and the end of the old text. So readers
    must recognise the end of a text.
    """
    descriptor = open_or_make(path, posix.O_WRONLY)
    try:
        data = text.encode("utf-8", "surrogateescape")
        posix.pwrite(descriptor, data, 0)
        posix.ftruncate(descriptor, len(data))
    finally:
        posix.close(descriptor)


def forget(home: str, instance: Instance, session: str) -> None:
    """Record that a session has ended for this instance; raise OSError on failure.

    The instance's file in `sessions/` is removed if the file still names this session.
    `.active_session` is removed with the last instance of the session.
    """
    _mark_ended(home, instance, session)
    own = f"{home}/sessions/.session_{instance.pid}"
    if _first_line(own) == session:
        remove(own)
    active = f"{home}/.active_session"
    if _first_line(active) == session and not _has_others(home, session):
        remove(active)


def _mark_ended(home: str, instance: Instance, session: str) -> None:
    known = remembered(home, instance.key)
    if (known.get("id"), known.get("session")) == (instance.id, session):
        lines = [f"{name}={value}" for name, value in (known | {"ended": "1"}).items()]
        overwrite_small(f"{home}/instances/{instance.key}", "\n".join([*lines, "end\n"]))


def _has_others(home: str, session: str) -> bool:
    """Tell whether another instance has a marker for this session."""
    folder = f"{home}/sessions"
    try:
        names = posix.listdir(folder)
    except OSError:
        return False
    return any(_first_line(f"{folder}/{name}") == session for name in names)


def remove(path: str) -> None:
    """Delete a file, which usually does not exist."""
    try:
        posix.unlink(path)
    except OSError:
        return


def marked_by_settings(home: str, instance: Instance) -> bool:
    """Tell whether a hook of Claude Code's settings, not of the plugin, ran for this process."""
    text = read_small(_settings_marker(home, instance))
    return text == f"pid={instance.pid}\nstarted={instance.started}\n"


def _settings_marker(home: str, instance: Instance) -> str:
    return f"{home}/instances/{instance.key}.settings"


def marked_session(home: str, instance: Instance) -> str:
    """Return the session in the marker files, or "", for an event without a session id."""
    for name in (f"sessions/.session_{instance.pid}", ".active_session"):
        session = valid_id(_first_line(f"{home}/{name}"))
        if session:
            return session
    return ""


def _first_line(path: str) -> str:
    return read_small(path).partition("\n")[0]


def remembered(home: str, key: str) -> dict[str, str]:
    """Return the stored fields of an instance; invalid ids are replaced by ""."""
    text, whole, _ = read_small(f"{home}/instances/{key}").partition("\nend\n")
    lines = text.splitlines() if whole else []
    found = {name: value for name, _, value in (line.partition("=") for line in lines)}
    ids = {name: valid_id(found.get(name, "")) for name in ("id", "session")}
    return found | ids


def _claude_process() -> tuple[int, str]:
    """Return pid and start time of the Claude Code process that started the hook.

    If no ancestor is a known host, return the nearest one that is no shell. If the parent has
    ended, return this process.
    """
    parent = sender.parent()
    name, above, started = _process(parent)
    if _is_init(parent, name):
        return sender.pid(), _process(sender.pid())[2]
    if name not in _SHELLS:
        return parent, started
    pid, nearest = parent, (parent, started)
    for _ in range(_STEPS):
        pid = above
        name, above, since = _process(pid)
        if name in _HOSTS:
            return pid, since
        if nearest[0] == parent and name and name not in _SHELLS and not _is_init(pid, name):
            nearest = pid, since  # the shell itself ends with the hook
    return nearest


def ancestors() -> dict[int, str]:
    """Return the /proc/<pid>/stat of this process and of its nearest ancestors; Linux only."""
    found: dict[int, str] = {}
    pid = posix.getpid()
    while pid and len(found) < _STEPS + 2:
        found[pid] = read_small(f"/proc/{pid}/stat")
        pid = int(found[pid].rpartition(")")[2].split()[1]) if found[pid] else 0
    return found


def _is_init(pid: int, name: str) -> bool:
    return (pid == 1 or name in _INITS) and name not in _HOSTS


def _process(pid: int) -> tuple[str, int, str]:
    """Return name, parent and start time (clock ticks since boot) of a process; Linux only."""
    sent = sender.stat_of(pid)
    text = read_small(f"/proc/{pid}/stat") if sent is None else sent
    name, found, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    if not found or len(fields) < 20:
        return "", 0, ""
    return name, int(fields[1]), fields[19]


def own_start_ns() -> int:
    """Return the start of this process on the monotonic clock, computed from its CPU time.

    The result assumes that the new process was always using a CPU or waiting for a CPU.
    """
    return time.monotonic_ns() - time.process_time_ns() - (waited_for_cpu() or 0)


def waited_for_cpu() -> int | None:
    """Return the time in ns that this process has waited for a CPU, or None outside Linux."""
    try:
        return int(read_small("/proc/thread-self/schedstat").split()[1])
    except (ValueError, IndexError):
        return None


def _start_epoch(started: str) -> int:
    """Return the start of the process in seconds since 1970, equal in all hooks of the process."""
    boot = _boot_epoch()
    if not started or not boot:
        return int(time.time())
    return boot + int(started) // posix.sysconf("SC_CLK_TCK")


def _boot_epoch() -> int:
    """Return the boot time of the machine in seconds since 1970, or 0.

    In /proc/stat, one line per core precedes the boot time, so up to 1 MB is read.
    """
    found = read_small("/proc/stat", 1 << 20).partition("\nbtime ")[2].split()
    return int(found[0]) if found else 0
