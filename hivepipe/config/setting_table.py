"""The table of settings: the valid values of each, its default, and the files that can set it."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.files.regular_file import read_text
from hivepipe.home import absolute, user_config_folder
from hivepipe.settings import DEFAULTS
from hivepipe.text import urls

NAME = "config.toml"
LIMIT_BYTES = 1 << 20

Reader = Callable[[Any], str | None]  # TOML value -> text of the variable, or None if invalid


def _switch(value: Any) -> str | None:
    return str(value).lower() if isinstance(value, bool) else None


def _folders(value: Any) -> str | None:
    if not isinstance(value, list) or not all(_path(entry) for entry in value):
        return None
    return None if any(":" in entry for entry in value) else ":".join(map(absolute, value)) or None


def _number(value: Any) -> str | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number and 0 <= value < 1e9 else None


def _port(value: Any) -> str | None:
    return str(value) if type(value) is int and 0 <= value <= 65_535 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value and value.isprintable() else None


def _path(value: Any) -> str | None:
    text = _text(value)
    return text if text and text.startswith(("/", "~/")) else None


def _address(value: Any) -> str | None:
    text = _text(value)
    return text if text and urls.is_web_address(text) else None


def _one_of(*words: str) -> Reader:
    return lambda value: value if value in words else None


def _counts(number: int) -> Reader:
    def read(value: Any) -> str | None:
        found = value if isinstance(value, list) else [value]
        usable = all(type(count) is int and 0 < count < 1_000_000 for count in found)
        usable = usable and found == sorted(found)
        return " ".join(map(str, found)) if usable and len(found) == number else None

    return read


def _id(value: Any) -> str | None:
    fits = isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9._-]{1,128}", value)
    return value if fits else None


def _patterns(value: Any) -> str | None:
    """Join a list of patterns by "; ", or return None if it is invalid; [] becomes ";"."""
    if not isinstance(value, list) or not all(_text(entry) for entry in value):
        return None
    return None if any(";" in entry for entry in value) else "; ".join(value) or ";"


def _names(value: Any) -> str | None:
    """Join a list of variable names by spaces, or return None if the list is invalid."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return None
    return " ".join(value) if all(re.fullmatch(r"[A-Za-z_]\w*", each) for each in value) else None


class Setting(NamedTuple):
    """One setting; `kind` describes valid values in error messages.

    If `is_the_users`, only the user's own file can set it. A home can be in a repository, and other
    authors of the repository must not be able to name a program.
    """

    name: str
    read: Reader
    kind: str
    unset: str = ""  # the default in words, if `settings.DEFAULTS` has no value
    is_the_users: bool = False
    is_of_files: bool = False  # the environment, which a project can change, cannot set it
    limits_spending: bool = False  # an invalid value is kept: code that spends money refuses it

    @property
    def variable(self) -> str:
        return f"HIVEPIPE_{self.name.upper()}"

    @property
    def default(self) -> str:
        """Return the default value, or a description of it if the default is not fixed."""
        return DEFAULTS.get(self.variable) or self.unset


_users = partial(Setting, is_the_users=True)
_users_file = partial(Setting, is_the_users=True, is_of_files=True)
_summaries = partial(Setting, is_the_users=True, limits_spending=True)  # for privacy and cost
_OF_PROVIDER = "the provider's own"
ID = "a name of letters, digits, '.', '_', '-'"
SETTINGS = (
    Setting("use_queue", _switch, "true or false", "true"),
    Setting("checkpoint_interval", _number, "a number of seconds"),
    Setting("swarm_id", _id, ID, "one per project"),
    Setting("agent_id", _id, ID, "none"),
    Setting(
        "profile_dir", _path, "an absolute path", "profiles/<id> in the home", is_of_files=True
    ),
    _users("memory_dirs", _folders, "a list of absolute paths", "none"),
    Setting("memory_recall", _switch, "true or false", "false", is_of_files=True),
    _users("embeddings_url", _address, urls.KIND, "none"),
    _users("embeddings_model", _text, "a name", "none"),
    Setting("pm2", _switch, "true or false", "false"),
    Setting("guard", _one_of("off", "tasks", "all"), '"off", "tasks" or "all"'),
    Setting("guard_loop", _counts(2), "two counts, the smaller first"),
    Setting("guard_alternation", _counts(2), "two counts, the smaller first"),
    Setting("guard_empty_polls", _counts(1), "a count"),
    Setting("guard_polls", _patterns, "a list of tools", "none"),
    Setting("guard_waiting", _patterns, "a list of tools"),
    Setting("autostart", _switch, "true or false", "true, but not in CI or the cloud"),
    Setting("idle_secs", _number, "a number of seconds"),
    Setting("stalled_secs", _number, "a number of seconds"),
    Setting("lost_secs", _number, "a number of seconds"),
    Setting("shared_root", _path, "an absolute path", "none"),
    Setting("db", _path, "an absolute path", "hive.db in the home"),
    _users_file("web", _switch, "true or false", "false"),
    _users_file("web_port", _port, "a TCP port"),
    Setting("log_format", _one_of("text", "json"), '"text" or "json"', "text"),
    Setting("fsync", _one_of("always", "everysec"), '"always" or "everysec"', "everysec"),
    _users("redis_url", _text, "the URL of a Redis", "a Redis of the home's own"),
    _users_file("redis_server", _path, "an absolute path", "the first on PATH"),
    _users("alert_command", _text, "a command", "none"),
    _users("alert_webhook", _address, urls.KIND, "none"),
    _summaries("summaries", _switch, "true or false", "as `hivepipe summaries enable` left it"),
    _summaries("llm_model", _text, "the name of a model", _OF_PROVIDER),
    _summaries("llm_timeout", _number, "a number of seconds"),
    _summaries("llm_daily_calls", _number, "a number"),
    _summaries("llm_daily_tokens", _number, "a number"),
    _summaries("llm_daily_usd", _number, "a number of dollars"),
    _summaries("openrouter_url", _address, urls.KIND, _OF_PROVIDER),
    _summaries("anthropic_url", _address, urls.KIND, _OF_PROVIDER),
    _summaries("openai_url", _address, urls.KIND, _OF_PROVIDER),
    _summaries("codex_url", _address, urls.KIND, _OF_PROVIDER),
    _summaries("memory_rating", _switch, "true or false", "false"),
    _summaries("memory_server", _address, urls.KIND, "none"),
    _users("claude", _text, "a command", "the first on PATH"),
    _users_file(
        "hive_rights",
        _one_of("edits", "commits", "all"),
        '"edits", "commits" or "all"',
        "none: `hivepipe hive rights` asks",
    ),
    _users_file("hive_flags", _text, "flags of claude", "none"),
    _users("hive_env", _names, "a list of variables", "none"),
    Setting("hive_stale_secs", _number, "a number of seconds"),
    _users("hive_policy", _one_of("report", "ask", "respawn"), '"report", "ask" or "respawn"'),
    Setting("hive_grace_secs", _number, "a number of seconds"),
    _users("hive_respawns", _number, "a count"),
    _users("hive_limit_usd", _number, "a number of dollars"),
)
SECTIONS = ("redaction", "retention")  # other modules read these sections
BY_NAME = {setting.name: setting for setting in SETTINGS}


def files(home: str) -> tuple[str, str]:
    """Return the paths of the user's file and the home's file; the home's file takes precedence."""
    return f"{user_config_folder()}/{NAME}", f"{home}/{NAME}"


def text_of(path: str | Path) -> str:
    """Return the text of a settings file. Raises OSError or UnicodeDecodeError."""
    return read_text(path, limit=LIMIT_BYTES)


def variables(values: dict[str, str]) -> dict[str, str]:
    """Return environment variable -> value for the settings whose names are keys of `values`."""
    return {BY_NAME[name].variable: text for name, text in values.items()}
