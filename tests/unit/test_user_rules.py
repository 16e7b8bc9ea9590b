"""Rules, allowed texts and switched-off rules from a config.toml."""

import posix
from pathlib import Path

import pytest

from hivepipe.config import Config
from hivepipe.errors import RedactionRuleError
from hivepipe.redaction import built_in
from hivepipe.redaction.redactor import Redactor
from hivepipe.redaction_config import load_redactor

EMPLOYEE = r"""
[[redaction.rules]]
name = "employee"
pattern = '\bEMP-([0-9]{6})\b'
replacement = "***EMPLOYEE***"
keywords = ["EMP-"]
examples = ["id EMP-123456"]
counterexamples = ["EMP-12"]
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home's file; the user's own is `user/hivepipe/config.toml` beside it."""
    own = str(tmp_path / "user").encode()
    monkeypatch.setattr(posix, "environ", {b"XDG_CONFIG_HOME": own})
    (tmp_path / "user" / "hivepipe").mkdir(parents=True)
    return tmp_path / "config.toml"


def redactor(config: Path, text: str) -> Redactor:
    config.write_text(text, encoding="utf-8")
    return load_redactor(str(config.parent))


def test_a_rule_of_ones_own_works_beside_the_built_in_ones(config: Path) -> None:
    own = redactor(config, EMPLOYEE)
    line = rb'{"a": "EMP-123456 \u0045MP-654321", "b": "ana@shop.io"}'
    assert own.redact_line(line) == (
        rb'{"a": "EMP-***EMPLOYEE*** \u0045MP-***EMPLOYEE***", "b": "***EMAIL***"}',
        ("employee", "employee", "email"),
    )
    assert own.redact_text("EMP-123456") == "EMP-***EMPLOYEE***"


def test_a_rule_without_keywords_looks_at_every_text(config: Path) -> None:
    own = redactor(
        config, "[[redaction.rules]]\nname = 'caf\u00e9'\npattern = 'caf\u00e9 [a-z]+'\n"
    )
    assert own.redact_line(b'{"a": ["caf\\u00e9 luna"]}')[0] == b'{"a": ["***REDACTED***"]}'
    assert own.redact_text("im caf\u00e9 luna") == "im ***REDACTED***"


def test_a_catastrophic_pattern_is_harmless(config: Path) -> None:
    own = redactor(config, "[[redaction.rules]]\nname = 'x'\npattern = '(a+)+(a|aa)*b$'\n")
    assert own.redact_text("a" * 100_000) == "a" * 100_000


def test_allowed_texts_and_switched_off_rules(config: Path) -> None:
    own = redactor(config, "[redaction]\nallow = ['.*@shop\\.io']\ndisable = ['password']\n")
    assert own.redact_text("ana@shop.io, ana@corp.io") == "ana@shop.io, ***EMAIL***"
    assert own.redact_text("password = 'hunter'") == "password = 'hunter'"


def test_both_files_add_up_and_the_homes_wins(config: Path) -> None:
    own = config.parent / "user" / "hivepipe" / "config.toml"
    own.write_text(EMPLOYEE + "[redaction]\nallow = ['a@shop.io']\n")
    both = redactor(config, EMPLOYEE.replace("***EMPLOYEE***", "***NUMBER***"))
    assert both.redact_text("EMP-123456 a@shop.io") == "EMP-***NUMBER*** a@shop.io"


def test_a_rule_may_take_the_place_of_a_built_in_one(config: Path) -> None:
    own = redactor(config, "[[redaction.rules]]\nname = 'email'\npattern = '[a-z]+@corp\\.io'\n")
    assert own.redact_text("ana@corp.io bo@shop.io") == "***REDACTED*** bo@shop.io"


def test_without_files_the_built_in_rules_are_in_force(config: Path) -> None:
    assert load_redactor(str(config.parent)) is built_in()
    assert redactor(config, "use_queue = true\n") is built_in()


RULE = "[[redaction.rules]]\nname = 'mine'\npattern = 'x+'\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[redaction", "cannot be read"),
        ("redaction = 3", "[redaction] is not a table"),
        ("[redaction]\nalow = []", "unknown key 'alow'"),
        ("[redaction]\nallow = 'x'", "allow must be a list"),
        ("[redaction]\nallow = [1]", "allow must be a list of texts"),
        ("[redaction]\nallow = ['(']", "'allow': missing )"),
        ("[redaction]\ndisable = ['emial']", "no built-in rule is called 'emial'"),
        ("[redaction]\nrules = ['x']", "rule number 1 is not a table"),
        ("[[redaction.rules]]\npattern = 'x'", "rule number 1 has no name"),
        ("[[redaction.rules]]\nname = 'mine'", "rule 'mine' has no pattern"),
        (RULE + "patern = 'x'", "rule 'mine': unknown key 'patern'"),
        (RULE.replace("x+", "x)"), "rule 'mine': unexpected )"),
        (RULE.replace("x+", "(?=x)"), "rule 'mine': invalid perl operator"),
        (RULE.replace("x+", "(?:x{1000}){1000}"), "rule 'mine'"),
        (RULE.replace("x+", "x*"), "rule 'mine': the pattern matches the empty text"),
        (RULE + "replacement = '\"'", "rule 'mine': replacement must be plain ASCII"),
        (RULE + "replacement = ''", "rule 'mine': replacement must be plain ASCII"),
        (RULE + "keywords = ['']", "rule 'mine': keyword ''"),
        (RULE + "keywords = ['caf\u00e9']", "rule 'mine': keyword 'caf\u00e9'"),
        (RULE + "examples = ['y']", "rule 'mine' does not find its own example 'y'"),
        (RULE + "counterexamples = ['x']", "rule 'mine' finds something in its counterexample 'x'"),
        (RULE + "keywords = ['z']\nexamples = ['x']", "rule 'mine' does not find its own example"),
    ],
)
def test_a_bad_file_is_named_with_the_rule_and_its_fault(
    config: Path, text: str, said: str
) -> None:
    with pytest.raises(RedactionRuleError) as error:
        redactor(config, text)
    assert str(error.value).startswith(f"{config}: ")
    assert said in str(error.value)


def test_a_file_that_cannot_be_read_is_no_missing_file(config: Path) -> None:
    config.write_bytes(b"[redaction]\nallow = ['\xe9']\n")
    with pytest.raises(RedactionRuleError, match="cannot be read"):
        load_redactor(str(config.parent))
    config.unlink()
    config.mkdir()
    with pytest.raises(RedactionRuleError, match="cannot be read"):
        load_redactor(str(config.parent))


def test_other_readers_of_the_file_leave_the_section_alone(config: Path) -> None:
    config.write_text(EMPLOYEE)
    assert Config(str(config.parent)).problems == []
