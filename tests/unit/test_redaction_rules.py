"""Every rule finds its examples, leaves its counterexamples alone, and is needed."""

import functools
import json
import random
import re
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import pytest

import hivepipe.redact
from hivepipe.redact import redact_line, redact_text
from hivepipe.redact.built_in_rules import rules as built_in_rules
from hivepipe.redact.redactor import Redactor
from hivepipe.redact.rule import AWS_KEY, EMAIL, REDACTED, SSH_KEY, Rule
from hivepipe.redact.scanner import Scanner, Span, compiled
from tests.redaction_corpus import expand

RULES = built_in_rules()
SEEDS = range(3)
# In nested JSON the last character of an escape precedes a secret: `\\\\ncurl -u`, `\\u0000sk-`.
BEFORE = ("x\n", "x\t", *(f"tool{end}--key{end}" for end in "\x00\x1b\x1f\xa0\u2028"))


def before_and_after(rule: Rule, example: str, seed: int) -> tuple[str, str]:
    """Return an example with its secret, and the expected redacted text."""
    text = expand(example, random.Random(f"{example} {seed}"))
    around = re.fullmatch(r"(.*)«(.*)»(.*)", text, re.DOTALL)
    assert around, f"{rule.name}: no «secret» in {example}"
    return "".join(around.groups()), f"{around[1]}{rule.replacement}{around[3]}"


@functools.cache
def samples(rule: Rule, seeds: Iterable[int] = SEEDS) -> list[tuple[str, str]]:
    """Return every example with its secret, and the expected redacted text."""
    return [before_and_after(rule, example, seed) for example in rule.examples for seed in seeds]


def all_samples() -> Iterator[tuple[Rule, str, str]]:
    """Yield each rule with each of its examples, once."""
    for rule in RULES:
        for text, clean in samples(rule, range(1)):
            yield rule, text, clean


def without_own(text: str, rule: Rule) -> str:
    """Return the text without the name of the placeholder, which another rule may have put in."""
    return text.replace(rule.replacement, "***")


def test_a_rule_replaces_the_secret_of_its_example_and_nothing_else() -> None:
    for rule in RULES:
        alone = Redactor([rule])
        for text, clean in samples(rule):
            assert alone.redact_text(text) == clean, rule.name
            together = redact_text(text)
            assert without_own(together, rule) == without_own(clean, rule), rule.name
        for example in rule.counterexamples:
            for seed in SEEDS:
                text = expand(example, random.Random(seed))
                assert alone.redact_text(text) == text, rule.name


def test_without_the_rule_one_of_its_examples_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor, find, left_out = Redactor(), Scanner._find_one, 0

    def find_by_others(scanner: Scanner, number: int, text: bytes, deadline: float) -> list[Span]:
        return [] if number == left_out else find(scanner, number, text, deadline)

    monkeypatch.setattr(Scanner, "_find_one", find_by_others)
    for left_out, rule in enumerate(RULES):  # noqa: B007
        missed = [text for text, clean in samples(rule) if redactor.redact_text(text) != clean]
        assert missed, rule.name


def test_no_spelling_hides_a_secret() -> None:
    """The sieve sees raw bytes, so it must let every JSON encoding of a secret reach its rule."""
    for rule, text, clean in all_samples():
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
            assert without_own(inner, rule) == without_own(clean, rule), spelled


def test_no_escape_before_a_secret_hides_it() -> None:
    for _, text, _ in all_samples():
        for before in BEFORE:
            told = before + text
            if before in ("x\n", "x\t") or redact_text(told) != told:
                assert redact_line(json.dumps([told]).encode())[1], told
                assert redact_line(json.dumps([json.dumps([told])]).encode())[1], told


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
@pytest.mark.parametrize(
    "name",
    ["contraseña", "hasło", "lösenord", "jelszó", "mật khẩu", "пароль", "비밀번호", "パスワード"],
)
def test_a_letter_is_read_in_each_case_and_decomposed(
    name: str, case: Callable[[str], str], form: Literal["NFC", "NFD"]
) -> None:
    text = unicodedata.normalize(form, case(name)) + ": hunter2x"
    assert redact_text(text).endswith(": ***REDACTED***")
    assert redact_line(json.dumps([text]).encode())[1] == ("password_told",)


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


def test_a_user_may_write_the_rules_too() -> None:
    """The built-in rules meet the requirements on rules of a user."""
    for rule in RULES:
        pattern = compiled(rule.pattern.replace("\u00ab", ""), rule.name)
        assert pattern.search(b"") is None, rule.name
        assert not (rule.is_token and pattern.groups), rule.name


def test_rules_have_names_of_their_own_examples_and_known_placeholders() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert [rule.name for rule in RULES if not rule.examples] == []
    assert [rule.name for rule in RULES if not rule.sieve] == [], "add `keywords` or a `sieve`"
    assert {rule.replacement for rule in RULES} == {REDACTED, EMAIL, SSH_KEY, AWS_KEY}
