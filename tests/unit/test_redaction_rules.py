"""Every rule finds its examples, leaves its counterexamples alone, and is needed."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Iterable

import pytest

import hivepipe.redact
from hivepipe.redact import redact_line, redact_text
from hivepipe.redact.built_in_rules import rules as built_in_rules
from hivepipe.redact.redactor import Redactor
from hivepipe.redact.rule import AWS_KEY, EMAIL, REDACTED, SSH_KEY, Rule
from hivepipe.redact.scanner import compiled
from tests.redaction_corpus import expand

RULES = built_in_rules()
SEEDS = range(5)
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def before_and_after(rule: Rule, example: str, seed: int) -> tuple[str, str]:
    """Return an example with its secret, and the expected redacted text."""
    text = expand(example, random.Random(f"{example} {seed}"))
    around = re.fullmatch(r"(.*)«(.*)»(.*)", text, re.DOTALL)
    assert around, f"{rule.name}: no «secret» in {example}"
    return "".join(around.groups()), f"{around[1]}{rule.replacement}{around[3]}"


def samples(rule: Rule, seeds: Iterable[int] = SEEDS) -> list[tuple[str, str]]:
    """Return every example with its secret, and the expected redacted text."""
    return [before_and_after(rule, example, seed) for example in rule.examples for seed in seeds]


@each_rule
def test_a_rule_replaces_the_secret_of_its_example_and_nothing_else(rule: Rule) -> None:
    alone = Redactor([rule])
    for text, clean in samples(rule):
        assert alone.redact_text(text) == clean


@each_rule
def test_all_rules_together_leave_nothing_of_the_secret(rule: Rule) -> None:
    for text, clean in samples(rule):
        found = redact_text(text)
        assert found.replace(rule.replacement, "***") == clean.replace(rule.replacement, "***")


@each_rule
def test_a_rule_leaves_its_counterexamples_alone(rule: Rule) -> None:
    alone = Redactor([rule])
    for example in rule.counterexamples:
        for seed in SEEDS:
            text = expand(example, random.Random(seed))
            assert alone.redact_text(text) == text


@each_rule
def test_without_the_rule_one_of_its_examples_is_missed(rule: Rule) -> None:
    others = Redactor([other for other in RULES if other is not rule])
    assert any(others.redact_text(text) != clean for text, clean in samples(rule))


@each_rule
def test_no_spelling_hides_a_secret(rule: Rule) -> None:
    """The sieve sees raw bytes, so it must let every JSON encoding of a secret reach its rule."""
    for text, clean in samples(rule, [0]):
        disguised = "".join(f"\\u{ord(letter):04x}" for letter in text)
        for spelled in (
            json.dumps({"k": [text]}),
            json.dumps([json.dumps({"k": text})]),
            json.dumps([json.dumps([json.dumps([text])])]),
            json.dumps(text).replace("/", "\\/"),
            f'["{disguised}"]',
            json.dumps([f'["{disguised}"]']),
        ):
            line, rules = redact_line(spelled.encode())
            assert rules, spelled
            inner = json.loads(line)
            while isinstance(inner, dict | list):
                inner = next(iter(inner.values())) if isinstance(inner, dict) else inner[0]
                if isinstance(inner, str) and inner[:1] in ("[", "{") and inner != clean:
                    inner = json.loads(inner)
            assert inner.replace(rule.replacement, "***") == clean.replace(rule.replacement, "***")


@each_rule
@pytest.mark.parametrize("before", ["x\n", "x\t"])
def test_no_line_break_of_json_hides_a_secret(rule: Rule, before: str) -> None:
    """In nested JSON the letter of an escape precedes the text: `\\\\ncurl -u ...`."""
    for text, _ in samples(rule, [0]):
        assert redact_line(json.dumps([before + text]).encode())[1], text
        assert redact_line(json.dumps([json.dumps([before + text])]).encode())[1], text


@each_rule
@pytest.mark.parametrize("before", ["\x00", "\x1b", "\x1f", "\xa0", "\u2028"])
def test_no_escape_before_a_secret_hides_it(rule: Rule, before: str) -> None:
    """The last digit of an escape precedes the text: `\\u0000sk-...`, as in /proc/N/cmdline."""
    for text, _ in samples(rule, [0]):
        told = f"tool{before}--key{before}{text}"
        if redact_text(told) != told:
            assert redact_line(json.dumps([told]).encode())[1], text
            assert redact_line(json.dumps([json.dumps([told])]).encode())[1], text


@each_rule
def test_redacted_text_is_not_changed_by_another_redaction(rule: Rule) -> None:
    for text, _ in samples(rule, [0]):
        once = redact_text(text)
        assert redact_text(once) == once


def test_no_text_with_a_secret_is_skipped_as_plain() -> None:
    for rule in RULES:
        for example in rule.examples:
            text, _ = before_and_after(rule, example, 0)
            assert not hivepipe.redact._PLAIN(text)


def test_a_process_that_redacts_nothing_reads_no_rules() -> None:
    code = """
from hivepipe import redact
from hivepipe.redact import built_in_rules, configured
assert not built_in_rules.section.cache_info().currsize
redact.redact_text("3f2a9c0e1b7d4f66")
redact.redact_text("DB_PASSWORD=hunter2x")
assert built_in_rules.section.cache_info().currsize
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@each_rule
def test_a_user_may_write_the_rule_too(rule: Rule) -> None:
    """The built-in rules meet the requirements on rules of a user."""
    plain = rule.pattern.replace("\u00ab", "")
    pattern = compiled(plain, rule.name)
    assert pattern.search(b"") is None
    assert not (rule.is_token and pattern.groups)


def test_rules_have_names_of_their_own_examples_and_known_placeholders() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.examples for rule in RULES)
    assert {rule.replacement for rule in RULES} == {REDACTED, EMAIL, SSH_KEY, AWS_KEY}
