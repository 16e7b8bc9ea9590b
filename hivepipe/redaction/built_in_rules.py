"""The rules that come along: rules.toml, read once, when a process redacts its first text."""

from functools import cache
from pathlib import Path

from hivepipe.redaction.rule import Rule
from hivepipe.redaction.rule_file import ENGINE_WORDS, Section, parse
from hivepipe.regular_file import read_text

FILE = Path(__file__).with_name("rules.toml")


@cache
def section() -> Section:
    """Return what the file says; it takes 30 ms to read. Its examples are tried by tests."""
    return parse(read_text(FILE), ENGINE_WORDS, try_examples=False)


def rules() -> tuple[Rule, ...]:
    """Return the rules, the most telling first: where two find the same, the first names it."""
    return section().rules
