"""`hivepipe config` prints the defaults that the code uses."""

import json
import posix
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hivepipe import settings
from hivepipe.cli.main import main
from hivepipe.config.setting_table import BY_NAME
from hivepipe.guard.check import guard_mode, limits
from hivepipe.orchestrator.respawn_policy import Policy
from hivepipe.stack import shared_page
from hivepipe.summaries.terms import caps, timeout_secs


def joined(*numbers: int) -> str:
    return " ".join(map(str, numbers))


def switch(name: str) -> Callable[[], str]:
    """Return a function that reads a switch which is off by default."""
    return lambda: str(settings.switched_on(name)).lower()


def number(name: str) -> Callable[[], float]:
    return lambda: settings.number(name)


# Setting -> its default in the code.
USED: dict[str, Callable[[], object]] = {
    "use_queue": lambda: str(not settings.switched_off("HIVEPIPE_USE_QUEUE")).lower(),
    "checkpoint_interval": number("HIVEPIPE_CHECKPOINT_INTERVAL"),
    "memory_recall": switch("HIVEPIPE_MEMORY_RECALL"),
    "memory_rating": switch("HIVEPIPE_MEMORY_RATING"),
    "pm2": switch("HIVEPIPE_PM2"),
    "web": lambda: str(shared_page.is_enabled()).lower(),
    "web_port": shared_page.default_port,
    "guard": lambda: guard_mode("/nowhere"),
    "guard_loop": lambda: joined(limits().loop_warn, limits().loop_deny),
    "guard_alternation": lambda: joined(limits().alternation_warn, limits().alternation_deny),
    "guard_empty_polls": lambda: limits().empty_polls,
    "guard_polls": lambda: "; ".join(limits().polls) or "none",
    "guard_waiting": lambda: "; ".join(limits().waiting),
    "idle_secs": number("HIVEPIPE_IDLE_SECS"),
    "stalled_secs": number("HIVEPIPE_STALLED_SECS"),
    "lost_secs": number("HIVEPIPE_LOST_SECS"),
    "llm_timeout": timeout_secs,
    "llm_daily_calls": lambda: caps().calls,
    "llm_daily_tokens": lambda: caps().tokens,
    "llm_daily_usd": lambda: caps().dollars,
    "hive_stale_secs": number("HIVEPIPE_HIVE_STALE_SECS"),
    "hive_policy": lambda: Policy.of_settings().mode,
    "hive_grace_secs": lambda: Policy.of_settings().grace_secs,
    "hive_respawns": lambda: Policy.of_settings().respawns,
    "hive_limit_usd": lambda: Policy.of_settings().limit_usd,
}
# Settings whose printed default describes a value, or the absence of one.
IN_WORDS = {
    *("swarm_id", "agent_id", "profile_dir", "memory_dirs", "embeddings_url", "embeddings_model"),
    *("autostart", "shared_root", "db", "log_format", "fsync", "redis_url", "redis_server"),
    *("alert_command", "alert_webhook", "summaries", "llm_model", "openrouter_url"),
    *("anthropic_url", "openai_url", "codex_url", "memory_server", "claude", "hive_rights"),
    *("hive_flags", "hive_env"),
}


@pytest.fixture
def printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Return the defaults that `hivepipe config` prints, by setting."""
    monkeypatch.setattr(posix, "environ", {b"HOME": bytes(tmp_path), b"PATH": b"/bin"})
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["config", "--json"])
    assert done.exit_code == 0, done.output
    values = json.loads(done.stdout)["values"]
    assert {each["source"] for each in values} == {"default"}
    yield {each["name"]: each["value"] for each in values}
    settings.use({})


def is_equal(text: str, value: object) -> bool:
    return float(text) == value if isinstance(value, int | float) else text == value


def test_what_config_prints_is_what_the_code_uses(printed: dict[str, str]) -> None:
    assert printed.keys() == USED.keys() | IN_WORDS
    for name, value in USED.items():
        assert is_equal(printed[name], value()), name


def test_each_default_is_declared_once() -> None:
    assert set(settings.DEFAULTS) <= {setting.variable for setting in BY_NAME.values()}
    for setting in BY_NAME.values():
        assert bool(setting.unset) != (setting.variable in settings.DEFAULTS), setting.name
        assert not any(character.isdecimal() for character in setting.unset), setting.name
