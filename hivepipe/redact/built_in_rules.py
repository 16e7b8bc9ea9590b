"""The built-in rules in rules.toml, read when a process redacts its first text."""

from functools import cache
from pathlib import Path

from hivepipe.files.regular_file import read_text
from hivepipe.redact.rule import Rule
from hivepipe.redact.rule_file import ENGINE_WORDS, Section, parse

FILE = Path(__file__).with_name("rules.toml")


@cache
def section() -> Section:
    """Return the parsed rules.toml. Parsing takes 30 ms.

    The examples of the rules are not tried. Only tests try them.
    """
    return parse(read_text(FILE), ENGINE_WORDS, kind="API key", try_examples=False)


def rules() -> tuple[Rule, ...]:
    """Return the built-in rules, the most specific ones first.

    If matches of several rules overlap, the first of these rules names the secret.
    """
    return section().rules
