"""What is set, by the environment or else by a `config.toml`: the only reader of the environment.

The files are read, and compiled for the hooks, by `hivepipe.config`; whoever has them hands their
values over with `use`. On the hook path, hence `posix` and not `os` (which costs 1.5 ms to import).
"""

import posix

# New name -> the seed's names, accepted beside it. The first one set wins.
ALIASES = {
    "HIVEPIPE_USE_QUEUE": ("USE_QUEUE",),
    "HIVEPIPE_DB": ("HIVE_DB",),
    "HIVEPIPE_CHECKPOINT_INTERVAL": ("CHECKPOINT_INTERVAL",),
    "HIVEPIPE_SESSION_ID": ("HIVE_SESSION_ID",),
    "HIVEPIPE_AGENT_ID": ("AGENT_ID",),
    "HIVEPIPE_TASK_FILE": ("TASK_FILE",),
    "HIVEPIPE_LLM_MODEL": ("MEMORY_RATER_LLM_MODEL",),
    "HIVEPIPE_MEMORY_RATING": ("MEMORY_LLM_RATER_ENABLED",),
}

CHECKPOINT_INTERVAL_SECS = 60.0
IDLE_SECS = 300.0
STALLED_SECS = 900.0
LOST_SECS = 1800.0
HIVE_STALE_SECS = 3600.0
HIVE_GRACE_SECS = 300.0
HIVE_RESPAWNS = 1
HIVE_LIMIT_USD = 5.0

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

# What the processes of a stack inherit from whoever starts it: a list, never a copy. Nothing of
# one session, nothing of Claude Code's (a `claude` that finds CLAUDECODE refuses to run), no
# credentials, no PYTHON*.
_INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "TZ", *_PROXIES, *map(str.lower, _PROXIES))
_INHERITED_STARTS = ("LC_", "XDG_")
_INHERITED_OURS = (
    "HIVEPIPE_HOME",
    "HIVEPIPE_DB",
    "HIVEPIPE_FSYNC",
    "HIVEPIPE_LOG_FORMAT",
    "HIVEPIPE_CHECKPOINT_INTERVAL",
    "HIVEPIPE_IDLE_SECS",
    "HIVEPIPE_STALLED_SECS",
    "HIVEPIPE_LOST_SECS",
    "HIVEPIPE_SHARED_ROOT",
    "HIVEPIPE_PM2",
)

_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")


_OF_THE_PLACE = ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR")

_from_files: dict[str, str] = {}


def use(values: dict[str, str]) -> None:
    """Take what the files say, by the names of the variables; the environment comes first."""
    _from_files.clear()
    _from_files.update(values)


def variable(name: str) -> str | None:
    """Return the variable or one of its old names, else what a file says; an empty one is unset."""
    return environment(name) or _from_files.get(name)


def of_files(name: str) -> str | None:
    """Return what a file says, whatever the environment does."""
    return _from_files.get(name)


def of_this_process(name: str) -> str | None:
    """Return a variable that names this very process.

    None of those that another Claude Code gave its shell commands: a `claude` among these is
    neither its session nor its instance.
    """
    return None if switched_on("HIVEPIPE_EXPORTED") else variable(name)


def environment(name: str) -> str | None:
    """Return what the environment alone says."""
    for candidate in (name, *ALIASES.get(name, ())):
        value = posix.environ.get(candidate.encode())
        if value:
            return value.decode("utf-8", "surrogateescape")
    return None


def absolute_entries(path: str) -> str:
    """Return PATH without its relative entries: they name folders of the current project."""
    return ":".join([entry for entry in path.split(":") if entry.startswith("/")])


def everything() -> dict[str, str]:
    """Return the whole environment, for a process that is to have what this one has."""
    decoded = "utf-8", "surrogateescape"
    return {name.decode(*decoded): value.decode(*decoded) for name, value in posix.environ.items()}


def inherited() -> dict[bytes, bytes]:
    """Return the environment for the processes of a stack."""
    kept = {
        name: value
        for name, value in posix.environ.items()
        if name.decode("utf-8", "replace") in _INHERITED
        or name.decode("utf-8", "replace").startswith(_INHERITED_STARTS)
    }
    path = absolute_entries(kept.pop(b"PATH", b"").decode("utf-8", "surrogateescape"))
    if path:
        kept[b"PATH"] = path.encode("utf-8", "surrogateescape")
    ours = {name: environment(name) for name in _INHERITED_OURS}
    return kept | {name.encode(): value.encode() for name, value in ours.items() if value}


def where_things_are() -> dict[bytes, bytes]:
    """Return of the environment only where this user's folders are."""
    return {
        name.encode(): value.encode("utf-8", "surrogateescape")
        for name in _OF_THE_PLACE
        if (value := environment(name))
    }


def switched_on(name: str) -> bool:
    """Is the variable set to a yes-word (1, true, yes, on)?"""
    return means_yes(variable(name) or "")


def means_yes(word: str) -> bool:
    """Is this a yes-word?"""
    return word.lower() in _YES


def switched_off(name: str) -> bool:
    """Is the variable set to a no-word (0, false, no, off)?"""
    return (variable(name) or "").lower() in _NO


def on_a_passing_machine() -> bool:
    """Is this CI, or a session in the cloud, where nothing is kept and nobody looks?"""
    return any([variable(name) and not switched_off(name) for name in ("CI", "CLAUDE_CODE_REMOTE")])


def checkpoint_interval_ns() -> int:
    """Return the least time between two checkpoints of an instance."""
    return int(_secs("HIVEPIPE_CHECKPOINT_INTERVAL", CHECKPOINT_INTERVAL_SECS) * 1e9)


def idle_secs() -> float:
    """Return after how much idleness a stack that a hook started leaves."""
    return _secs("HIVEPIPE_IDLE_SECS", IDLE_SECS)


def stalled_secs() -> float:
    """Return after how much silence in a turn a session is stalled."""
    return _secs("HIVEPIPE_STALLED_SECS", STALLED_SECS)


def lost_secs() -> float:
    """Return after how much silence in a turn a session is lost."""
    return _secs("HIVEPIPE_LOST_SECS", LOST_SECS)


def hive_stale_secs() -> float:
    """Return after how much silence a hive worker is stale."""
    return _secs("HIVEPIPE_HIVE_STALE_SECS", HIVE_STALE_SECS)


def hive_grace_secs() -> float:
    """Return how long a hive worker that was asked, or told to end, may take."""
    return _secs("HIVEPIPE_HIVE_GRACE_SECS", HIVE_GRACE_SECS)


def hive_policy() -> str:
    """Return what is done about silent hive workers: report, ask or respawn."""
    said = variable("HIVEPIPE_HIVE_POLICY") or ""
    return said if said in ("ask", "respawn") else "report"


def hive_respawns() -> int:
    """Return how often a hive worker may be followed by a fresh one."""
    return int(_secs("HIVEPIPE_HIVE_RESPAWNS", HIVE_RESPAWNS))


def hive_limit_usd() -> float:
    """Return how much asking, parking and respawning may cost a day, in dollars."""
    return _secs("HIVEPIPE_HIVE_LIMIT_USD", HIVE_LIMIT_USD)


def _secs(name: str, default: float) -> float:
    """Return a variable's number of seconds; nonsense means the default."""
    try:
        secs = float(variable(name) or default)
    except ValueError:
        return default
    return secs if 0 <= secs < 1e9 else default  # also refuses NaN
