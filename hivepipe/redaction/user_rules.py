"""Rules of a user's own: the section `[redaction]` of a config.toml.

    [redaction]
    allow = ['support@shop\\.io']       # what is no secret: RE2, for the whole of what a rule found
    disable = ["email"]                # built-in rules that are not wanted

    [[redaction.rules]]
    name = "employee"
    pattern = '\\bEMP-([0-9]{6})\\b'      # RE2; with a group, only what the group takes is replaced
    replacement = "***EMPLOYEE***"      # ***REDACTED*** where it is left out
    keywords = ["EMP-"]                 # one of them is in every match; without, each text is tried
    examples = ["id EMP-123456"]        # texts in which the rule must find something
    counterexamples = ["EMP-12"]        # texts in which it must not

Several files add up; a rule that a later file names again is the later file's. A pattern sees a
string together with its key, as `"key": "value"`, escapes undone.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hivepipe.errors import RedactionRuleError
from hivepipe.redaction.redactor import Redactor
from hivepipe.redaction.rule import REDACTED, Rule
from hivepipe.redaction.rules import RULES
from hivepipe.redaction.scanner import Scanner, compiled

_SECTION: Mapping[str, type] = {"allow": list, "disable": list, "rules": list}
_RULE: Mapping[str, type] = {
    "name": str,
    "pattern": str,
    "replacement": str,
    "keywords": list,
    "examples": list,
    "counterexamples": list,
}


@dataclass(frozen=True)
class Section:
    """What the section of one file says."""

    rules: tuple[Rule, ...] = ()
    allowed: tuple[str, ...] = ()
    disabled: frozenset[str] = frozenset()


def parse(text: str) -> Section:
    """Read a config.toml; RedactionRuleError names the rule and its fault."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise RedactionRuleError(f"cannot be read: {error}") from error
    section = _checked("[redaction]", content.get("redaction", {}), _SECTION)
    return Section(tuple(_rules(section)), tuple(_allowed(section)), frozenset(_disabled(section)))


def redactor(sections: Iterable[Section]) -> Redactor:
    """Return the redactor of the built-in rules and all of these sections."""
    own: dict[str, Rule] = {}
    allowed: list[str] = []
    disabled: set[str] = set()
    for section in sections:
        own |= {rule.name: rule for rule in section.rules}
        allowed += section.allowed
        disabled |= section.disabled
    kept = [rule for rule in RULES if rule.name not in disabled and rule.name not in own]
    return Redactor((*own.values(), *kept), allowed)


def _checked(what: str, table: object, kinds: Mapping[str, type]) -> dict[str, Any]:
    """Return the table if it has known keys only, each with a value of its kind."""
    if not isinstance(table, dict):
        raise RedactionRuleError(f"{what} is not a table")
    for key, value in table.items():
        kind = kinds.get(key)
        if kind is None:
            raise RedactionRuleError(f"{what}: unknown key {key!r}; known are {', '.join(kinds)}")
        if kind is str and not isinstance(value, str):
            raise RedactionRuleError(f"{what}: {key} must be a text")
        if kind is list and not isinstance(value, list):
            raise RedactionRuleError(f"{what}: {key} must be a list")
        if kind is list and key != "rules" and not all(isinstance(item, str) for item in value):
            raise RedactionRuleError(f"{what}: {key} must be a list of texts")
    return table


def _allowed(section: dict[str, Any]) -> Iterator[str]:
    for pattern in section.get("allow", []):
        compiled(_bytewise(pattern, "allow"), "allow")
        yield _bytewise(pattern, "allow")


def _disabled(section: dict[str, Any]) -> set[str]:
    names = set(section.get("disable", []))
    unknown = names - {rule.name for rule in RULES}
    if unknown:
        raise RedactionRuleError(f"disable: no built-in rule is called {sorted(unknown)[0]!r}")
    return names


def _rules(section: dict[str, Any]) -> Iterator[Rule]:
    for number, table in enumerate(section.get("rules", []), 1):
        name = table.get("name") if isinstance(table, dict) else None
        what = f"rule {name!r}" if name else f"rule number {number}"
        entry = _checked(what, table, _RULE)
        for key in ("name", "pattern"):
            if not entry.get(key):
                raise RedactionRuleError(f"{what} has no {key}")
        rule = _rule(entry, what)
        _try_examples(rule, what)
        yield rule


def _rule(entry: dict[str, Any], what: str) -> Rule:
    replacement = entry.get("replacement", REDACTED)
    if not re.fullmatch(r"[ -~]+", replacement) or set(replacement) & set('"\\'):
        raise RedactionRuleError(f"{what}: replacement must be plain ASCII without quotes or \\")
    pattern = _bytewise(entry["pattern"], what)
    if compiled(pattern, entry["name"]).search(b"") is not None:
        raise RedactionRuleError(f"{what}: the pattern matches the empty text")
    keywords = entry.get("keywords", [])
    for word in keywords:  # JSON may spell anything else in other ways
        if not re.fullmatch(r"[ !#-.0-\[\]-~]+", word):
            raise RedactionRuleError(f'{what}: keyword {word!r}: ASCII without ", / and \\ only')
    return Rule(
        name=entry["name"],
        kind="text of a rule of your own",
        pattern=pattern,
        sieve="|".join(map(re.escape, keywords)),
        replacement=replacement,
        examples=tuple(entry.get("examples", [])),
        counterexamples=tuple(entry.get("counterexamples", [])),
    )


def _bytewise(text: str, what: str) -> str:
    """Return the text as Latin-1 shows its UTF-8, the form in which patterns see transcripts."""
    try:
        return text.encode().decode("latin-1")
    except UnicodeEncodeError as error:
        raise RedactionRuleError(f"{what}: not valid UTF-8") from error


def _try_examples(rule: Rule, what: str) -> None:
    scanner = Scanner([rule])

    def is_found(example: str) -> bool:
        text = example.encode()
        return bool(scanner.find(text, scanner.suspects(text)))

    for example in rule.examples:
        if not is_found(example):
            raise RedactionRuleError(f"{what} does not find its own example {example!r}")
    for example in rule.counterexamples:
        if is_found(example):
            raise RedactionRuleError(f"{what} finds something in its counterexample {example!r}")
