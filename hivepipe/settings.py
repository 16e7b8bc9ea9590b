"""Settings from the environment and `config.toml`. Only this module reads the environment.

`hivepipe.config.config_file` reads the files, compiles them for the hooks, and passes their values
to `use`. Hooks import this module.
"""

from _thread import _local

from hivepipe import sender

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# New name -> older names, which are accepted too. The first one set is used.
ALIASES = {
    "HIVEPIPE_USE_QUEUE": ("USE_QUEUE",),
    "HIVEPIPE_DB": ("HIVE_DB",),
    "HIVEPIPE_CHECKPOINT_INTERVAL": ("CHECKPOINT_INTERVAL",),
    "HIVEPIPE_SESSION_ID": ("HIVE_SESSION_ID",),
    "HIVEPIPE_AGENT_ID": ("AGENT_ID",),
    "HIVEPIPE_TASK_FILE": ("TASK_FILE",),
    "HIVEPIPE_LLM_MODEL": ("MEMORY_RATER_LLM_MODEL",),
    "HIVEPIPE_MEMORY_RATING": ("MEMORY_LLM_RATER_ENABLED",),
    "HIVEPIPE_WEB_TOKEN": ("HIVEPIPE_DASHBOARD_TOKEN",),
}

# The defaults of settings, in the form of variables. A default that depends on something, and a
# setting without a default, are described in hivepipe.config.setting_table.
DEFAULTS = {
    "HIVEPIPE_CHECKPOINT_INTERVAL": "60",
    "HIVEPIPE_IDLE_SECS": "300",
    "HIVEPIPE_STALLED_SECS": "900",
    "HIVEPIPE_LOST_SECS": "1800",
    "HIVEPIPE_WEB_PORT": "9182",
    "HIVEPIPE_GUARD": "tasks",
    "HIVEPIPE_GUARD_LOOP": "8 15",
    "HIVEPIPE_GUARD_ALTERNATION": "6 12",
    "HIVEPIPE_GUARD_EMPTY_POLLS": "2",
    "HIVEPIPE_GUARD_WAITING": "TaskOutput; BashOutput; Monitor; Bash: sleep *; Bash: gh run *",
    "HIVEPIPE_LLM_TIMEOUT": "60",
    "HIVEPIPE_LLM_DAILY_CALLS": "20",
    "HIVEPIPE_LLM_DAILY_TOKENS": "200000",
    "HIVEPIPE_LLM_DAILY_USD": "0.50",
    "HIVEPIPE_HIVE_STALE_SECS": "3600",
    "HIVEPIPE_HIVE_GRACE_SECS": "300",
    "HIVEPIPE_HIVE_POLICY": "report",
    "HIVEPIPE_HIVE_RESPAWNS": "1",
    "HIVEPIPE_HIVE_LIMIT_USD": "5",
}

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

# Variables that the processes of a stack inherit: an allow list. It contains no variables
# of a session, none of Claude Code (a `claude` that finds CLAUDECODE refuses to run), no
# credentials and no PYTHON*.
_INHERITED = ("PATH", "HOME", "TMPDIR", "TZ", *_PROXIES, *map(str.lower, _PROXIES))
_LOCALES = (b"LANG", b"LC_")
_C_LOCALES = (b"C", b"POSIX")  # Python uses UTF-8 in these locales
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

# Of these, the variables that belong to one home: another home has its own values.
_OF_ONE_HOME = frozenset(_INHERITED_OURS[1:])

_YES = ("1", "true", "yes", "on")
_NO = ("0", "false", "no", "off")


_FOLDER_VARIABLES = ("HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR")

_from_files: dict[str, str] = {}
_of_thread = _local()
_of_thread.values = None  # without this, each look-up would raise and catch an error


def use(values: dict[str, str]) -> None:
    """Set the values read from config files, by variable name; the environment takes precedence."""
    _from_files.clear()
    _from_files.update(values)


def use_in_thread(values: dict[str, str] | None) -> dict[str, str] | None:
    """Set a home's values for this thread (None clears them); return the earlier values.

    These values take precedence even over environment variables, if the variables apply to one home
    only.
    """
    before: dict[str, str] | None = getattr(_of_thread, "values", None)
    _of_thread.values = values
    return before


def of_one_home(environment: "Mapping[bytes, bytes]") -> dict[str, str]:
    """Return those variables in a stack's environment that concern only one home."""
    return {
        name: value.decode("utf-8", "surrogateescape")
        for name in _OF_ONE_HOME
        for candidate in reversed((name, *ALIASES.get(name, ())))
        if (value := environment.get(candidate.encode()))
    }


def in_use() -> dict[str, str]:
    """Return the values read from the config files, as `use` received them."""
    return {**_from_files}


def _values() -> dict[str, str]:
    found: dict[str, str] | None = getattr(_of_thread, "values", None)
    return _from_files if found is None else found


def variable(name: str) -> str | None:
    """Return a setting's value, or None if it is not set.

    The value comes from the variable or an alias, else from a config file. "" counts as unset.
    """
    if name in _OF_ONE_HOME and getattr(_of_thread, "values", None) is not None:
        return _values().get(name)
    return environment(name) or _values().get(name)


def of_files(name: str) -> str | None:
    """Return the value in the config files, or None; the environment is ignored."""
    return _values().get(name)


def of_this_process(name: str) -> str | None:
    """Return a variable that identifies this process, or None.

    Variables exported to the shell commands of another Claude Code are ignored: a `claude` started
    there has its own session and instance.
    """
    return None if switched_on("HIVEPIPE_EXPORTED") else variable(name)


def environment(name: str) -> str | None:
    """Return the value of a variable or its alias in the environment, or None; ignore the files."""
    for candidate in (name, *ALIASES.get(name, ())):
        value = sender.environment().get(candidate.encode())
        if value:
            return value.decode("utf-8", "surrogateescape")
    return None


def absolute_entries(path: str) -> str:
    """Return PATH without relative entries, which would name folders of the current project."""
    return ":".join([entry for entry in path.split(":") if entry.startswith("/")])


def everything() -> dict[str, str]:
    """Return the whole environment, for a child process that needs it unchanged."""
    decoded = "utf-8", "surrogateescape"
    return {
        name.decode(*decoded): value.decode(*decoded)
        for name, value in sender.environment().items()
    }


def inherited() -> dict[bytes, bytes]:
    """Return the environment for the processes of a stack.

    Locale variables with another encoding than UTF-8 are left out, because Claude Code writes paths
    in UTF-8.
    """
    kept = {
        name: value
        for name, value in sender.environment().items()
        if name.decode("utf-8", "replace") in _INHERITED
        or name.startswith(b"XDG_")
        or (name.startswith(_LOCALES) and (value in _C_LOCALES or b"utf" in value.lower()))
    }
    path = absolute_entries(kept.pop(b"PATH", b"").decode("utf-8", "surrogateescape"))
    if path:
        kept[b"PATH"] = path.encode("utf-8", "surrogateescape")
    for name in _INHERITED_OURS:
        if value := environment(name):
            kept[name.encode()] = value.encode("utf-8", "surrogateescape")
    return kept


def folder_variables() -> dict[bytes, bytes]:
    """Return the variables that name this user's folders."""
    return {
        name.encode(): value.encode("utf-8", "surrogateescape")
        for name in _FOLDER_VARIABLES
        if (value := environment(name))
    }


def switched_on(name: str) -> bool:
    """Tell whether the variable is set to 1, true, yes or on."""
    return means_yes(variable(name) or "")


def means_yes(word: str) -> bool:
    """Tell whether the text is a yes-word: 1, true, yes or on."""
    return word.lower() in _YES


def means_no(word: str) -> bool:
    """Tell whether the text is a no-word: 0, false, no or off."""
    return word.lower() in _NO


def switched_off(name: str) -> bool:
    """Tell whether the variable is set to 0, false, no or off."""
    return means_no(variable(name) or "")


def on_ephemeral_machine() -> bool:
    """Tell whether this is a CI job or a cloud session, whose files are lost at the end."""
    return any([variable(name) and not switched_off(name) for name in ("CI", "CLAUDE_CODE_REMOTE")])


def number(name: str) -> float:
    """Return the number in a setting, or the default if it is no number from 0 to a billion."""
    default = float(DEFAULTS[name])
    try:
        found = float(variable(name) or default)
    except ValueError:
        return default
    return found if 0 <= found < 1e9 else default  # this also rejects NaN
