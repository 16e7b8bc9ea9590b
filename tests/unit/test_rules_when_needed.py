"""A command loads the redaction rules with the first text that it redacts."""

import posix
import subprocess
import sys
from pathlib import Path

import pytest

from hivepipe import redact
from hivepipe.redact.configured import load_redactor
from hivepipe.redact.files_of_rules import use_rules_when_needed

RULE = """
[[redaction.rules]]
name = "employee"
pattern = 'EMP-([0-9]{6})'
"""
# Takes a home without rules, then redacts a text. Prints after each whether RE2 is loaded.
PROGRAM = """
import sys
from hivepipe import redact
from hivepipe.redact.files_of_rules import use_rules_when_needed
print(repr(use_rules_when_needed(sys.argv[1])), "re2" in sys.modules)
print(redact.redact_text("ask ana@shop.io"), "re2" in sys.modules)
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home outside of any project. The user has no configuration file."""
    monkeypatch.setattr(posix, "environ", {b"XDG_CONFIG_HOME": str(tmp_path / "none").encode()})
    return tmp_path


def test_without_rules_of_the_user_none_is_loaded_before_the_first_text(home: Path) -> None:
    (home / "config.toml").write_text("use_queue = true\n")
    command = [sys.executable, "-I", "-c", PROGRAM, str(home)]
    output = subprocess.check_output(command, text=True, env={"HOME": str(home)}, timeout=60)
    before, after = output.splitlines()
    assert before == "'' False"
    assert after.startswith("ask ***REDACTED:email:")
    assert after.endswith(" True")


def test_the_first_text_gets_the_tags_of_the_home(home: Path) -> None:
    expected = load_redactor(str(home)).redact_text("ask ana@shop.io")
    assert use_rules_when_needed(str(home)) == ""
    assert redact.redact_text("ask ana@shop.io") == expected


@pytest.mark.parametrize("key", ["redaction", '"red\\u0061ction"'])
def test_rules_of_the_user_are_in_force_at_once(home: Path, key: str) -> None:
    (home / "config.toml").write_text(RULE.replace("redaction", key))
    assert use_rules_when_needed(str(home)) == ""
    assert redact._to_load == []
    assert "EMP-123456" not in redact.redact_text("ask EMP-123456")


@pytest.mark.parametrize("text", ["[redaction", RULE + "patern = 'x'", "x = " + "[" * 5000, ""])
def test_a_fault_in_the_rules_is_reported_at_once(home: Path, text: str) -> None:
    path = home / "config.toml"
    path.write_text(text) if text else path.mkdir()
    assert str(path) in use_rules_when_needed(str(home))
    assert "ana@shop.io" not in redact.redact_text("ask ana@shop.io")


def test_rules_put_in_force_later_take_the_place_of_those_to_be_loaded(home: Path) -> None:
    use_rules_when_needed(str(home))
    redact.use(load_redactor(str(home)).without_rules())
    assert redact.redact_text("ask ana@shop.io") == "ask ana@shop.io"
