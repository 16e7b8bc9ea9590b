"""The user's own redaction rules apply to every text that any process writes."""

import subprocess
from collections.abc import Callable

import pytest

from tests.conftest import COMMANDS, Home, Server, Writer, fire, is_drained, untagged, until
from tests.payloads import SESSION_START, USER_PROMPT_SUBMIT, changed

RULE = "[[redaction.rules]]\nname = 'employee'\npattern = 'EMP-[0-9]+'\nkeywords = ['EMP-']\n"
PROMPT = changed(USER_PROMPT_SUBMIT, prompt="ask EMP-123456, ana@shop.io")
CLEAN = "ask ***REDACTED***, ***EMAIL***"


@pytest.fixture
def home(private_home: Home) -> Home:
    private_home.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    (private_home.path / "config.toml").write_text(RULE)
    return private_home


def command(home: Home, *arguments: str) -> subprocess.CompletedProcess[str]:
    return COMMANDS.run(arguments, "", home.env, home.project, 60)


def prompt(home: Home) -> str:
    (row,) = home.rows("SELECT prompt FROM prompts")
    return untagged(row["prompt"])


def test_the_writer_applies_own_rules(home: Home, redis_server: Server, writer: Writer) -> None:
    writer.start()
    fire("SessionStart", SESSION_START, home.env)
    fire("UserPromptSubmit", PROMPT, home.env)
    until(lambda: is_drained(home, redis_server, writer), "not drained")
    assert prompt(home) == CLEAN


def test_the_direct_path_and_drain_apply_own_rules_with_the_key_of_the_home(home: Home) -> None:
    fire("UserPromptSubmit", PROMPT, home.with_env(AUTOSTART="0"))
    assert command(home, "drain").returncode == 0
    assert prompt(home) == CLEAN
    (row,) = home.rows("SELECT prompt FROM prompts")
    (home.root / "text").write_text(str(PROMPT["prompt"]))
    again = command(home, "redact", str(home.root / "text"))
    assert row["prompt"] == again.stdout.strip()
    assert "***REDACTED:email:" in row["prompt"]


def test_with_an_invalid_rule_the_built_in_rules_apply(
    home: Home, redis_server: Server, new_writer: Callable[[Home], Writer]
) -> None:
    (home.path / "config.toml").write_text(RULE.replace("EMP-[", "EMP-("))
    writer = new_writer(home)
    writer.start()
    fire("UserPromptSubmit", PROMPT, home.env)
    until(lambda: is_drained(home, redis_server, writer), "not drained")
    assert prompt(home) == "ask EMP-123456, ***EMAIL***"
    assert "rule 'employee'" in writer.text
    output = command(home, "config")
    assert output.returncode == 1
    assert "rule 'employee'" in output.stderr
