"""Parse redaction rules: the section `[redaction]` of a TOML file (config.toml or rules.toml).

docs/redaction.md describes the keys. A word, pattern, sieve or exception may be a list of
alternatives. A match of `not_in` has at most 256 bytes. A pattern is tried on a string together
with its key, as `"key": "value"`, with escapes decoded. In an example, «...» marks the secret.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any
from unicodedata import normalize

from hivepipe.errors import RedactionRuleError
from hivepipe.redact.rule import REDACTED, START, WORDS, Rule
from hivepipe.redact.scanner import Scanner, compiled

OWN_KIND = "text of a rule of your own"
ENGINE_WORDS: Mapping[str, str] = {"START": START, "WORDS": WORDS}  # patterns of the scanner

_TEXT, _TEXTS, _ALTERNATIVES = "a text", "a list of texts", "a text or a list of texts"
_SECTION: Mapping[str, str] = {
    "allow": _TEXTS,
    "disable": _TEXTS,
    "words": "a table",
    "rules": "a list",
}
_RULE: Mapping[str, str] = {
    "name": _TEXT,
    "kind": _TEXT,
    "pattern": _ALTERNATIVES,
    "replacement": _TEXT,
    "keywords": _TEXTS,
    "sieve": _ALTERNATIVES,
    "unless": _ALTERNATIVES,
    "not_in": _ALTERNATIVES,
    "entropy": "a number",
    "random": "true or false",
    "token": "true or false",
    "glued": "true or false",
    "examples": _TEXTS,
    "counterexamples": _TEXTS,
}
_WORD = re.compile(r"\{\{([^{}]*)\}\}")
_MARKED = re.compile("«(.*?)»", re.DOTALL)
_CLASS = r"\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|[^\]\\])*\]"
_LETTER = r"[^\x00-\x7f]"
_ONCE = "(?![?*+{])"  # no repetition follows
_NO_LETTER = rf"\\Q.*?(?:\\E|$)|\\.|{_CLASS}"
# Also the beginning of a word: one or two letters and at most two ASCII letters behind them
_NON_ASCII_WORD = re.compile(
    f"{_NO_LETTER}|({_LETTER}(?:{_LETTER}{_ONCE})?(?:[a-z ]{_ONCE}){{0,2}})(?:{_LETTER}|[a-z ])*",
    re.DOTALL,
)
_CLASS_OR_LETTER = re.compile(f"{_NO_LETTER}|{_LETTER}", re.DOTALL)


@dataclass(frozen=True)
class Section:
    rules: tuple[Rule, ...] = ()
    allowed: tuple[str, ...] = ()
    disabled: frozenset[str] = frozenset()
    words: Mapping[str, str] = field(default_factory=dict)


def parse(
    text: str, words: Mapping[str, str], *, kind: str = OWN_KIND, try_examples: bool = True
) -> Section:
    """Parse rules, with predefined `words` and the default `kind`, or raise RedactionRuleError."""
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise RedactionRuleError(f"cannot be read: {error}") from error
    section = _checked("[redaction]", content.get("redaction", {}), _SECTION)
    own = _words(section, words)
    rules = tuple(_rules(section, {**words, **own}, kind))
    if try_examples:
        for rule in rules:
            _try_examples(rule)
    disabled = frozenset(section.get("disable", ()))
    return Section(rules, tuple(_allowed(section)), disabled, own)


def _checked(what: str, table: object, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Return the table. Raise RedactionRuleError for an unknown key, or a value of another type."""
    if not isinstance(table, dict):
        raise RedactionRuleError(f"{what} is not a table")
    for key, value in table.items():
        if key not in kinds:
            raise RedactionRuleError(f"{what}: unknown key {key!r}; known are {', '.join(kinds)}")
        if not _is_of_kind(value, kinds[key]):
            raise RedactionRuleError(f"{what}: {key} must be {kinds[key]}")
    return table


def _is_of_kind(value: object, kind: str) -> bool:
    is_texts = isinstance(value, list) and all(isinstance(item, str) for item in value)
    return {
        _TEXT: isinstance(value, str),
        _TEXTS: is_texts,
        _ALTERNATIVES: isinstance(value, str) or is_texts,
        "a number": isinstance(value, int | float) and not isinstance(value, bool),
        "true or false": isinstance(value, bool),
        "a table": isinstance(value, dict),
        "a list": isinstance(value, list),
    }[kind]


def _words(section: dict[str, Any], known: Mapping[str, str]) -> dict[str, str]:
    """Return the words of a section, with nested words expanded, or raise RedactionRuleError."""
    words: dict[str, str] = {}
    for name, text in section.get("words", {}).items():
        if not re.fullmatch("[A-Z][A-Z0-9_]*", name):
            raise RedactionRuleError(f"word {name!r}: its name must be capitals, digits and _")
        if not _is_of_kind(text, _ALTERNATIVES):
            raise RedactionRuleError(f"word {name!r} must be {_ALTERNATIVES}")
        words[name] = _expanded(text, {**known, **words}, f"word {name!r}")
    return words


def _expanded(pattern: str | list[str], words: Mapping[str, str], what: str) -> str:
    """Return a pattern with its alternatives joined and its words expanded."""
    text = pattern if isinstance(pattern, str) else "|".join(pattern)

    def meant(found: re.Match[str]) -> str:
        if found[1] not in words:
            raise RedactionRuleError(f"{what}: no word is called {found[1]!r}")
        return words[found[1]]

    return _WORD.sub(meant, text)


def _allowed(section: dict[str, Any]) -> Iterator[str]:
    for pattern in section.get("allow", []):
        compiled(_bytewise(pattern, "allow"), "allow")
        yield _bytewise(pattern, "allow")


def _rules(section: dict[str, Any], words: Mapping[str, str], kind: str) -> Iterator[Rule]:
    for number, table in enumerate(section.get("rules", []), 1):
        name = table.get("name") if isinstance(table, dict) else None
        what = f"rule {name!r}" if name else f"rule number {number}"
        entry = _checked(what, table, _RULE)
        for key in ("name", "pattern"):
            if not entry.get(key):
                raise RedactionRuleError(f"{what} has no {key}")
        yield _rule({"kind": kind, **entry}, what, words)


def _rule(entry: dict[str, Any], what: str, words: Mapping[str, str]) -> Rule:
    replacement = entry.get("replacement", REDACTED)
    if not re.fullmatch(r"[ -~]+", replacement) or set(replacement) & set('"\\'):
        raise RedactionRuleError(f"{what}: replacement must be plain ASCII without quotes or \\")
    kind = entry["kind"]
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9 -]{0,30}", kind):
        raise RedactionRuleError(f"{what}: kind must be a few words of letters and digits")
    is_token = entry.get("token", False)
    return Rule(
        name=entry["name"],
        kind=kind,
        pattern=_bytewise(_expanded(entry["pattern"], words, what), what),
        sieve=_sieve(entry, what, words),
        is_token=is_token,
        may_be_glued=is_token and entry.get("glued", True),
        replacement=replacement,
        unless=_bytewise(_expanded(entry.get("unless", ""), words, what), what),
        not_in=_bytewise(_expanded(entry.get("not_in", ""), words, what), what),
        least_entropy=entry.get("entropy", 0.0),
        must_look_random=entry.get("random", False),
        examples=tuple(entry.get("examples", [])),
        counterexamples=tuple(entry.get("counterexamples", [])),
    )


def _sieve(entry: dict[str, Any], what: str, words: Mapping[str, str]) -> str:
    keywords = entry.get("keywords", [])
    for word in keywords:  # JSON may escape any other character
        if not re.fullmatch(r"[ !#-.0-\[\]-~]+", word):
            raise RedactionRuleError(f'{what}: keyword {word!r}: ASCII without ", / and \\ only')
    sieve = _expanded(entry.get("sieve", ""), words, what)
    return "|".join([*map(re.escape, keywords), *filter(None, [_as_spelled(sieve, what)])])


def _as_spelled(sieve: str, what: str) -> str:
    """Return the pattern `sieve` for raw bytes, in which JSON may escape non-ASCII letters.

    In escaped form, only the beginning of a word is searched, because a second sieve of full length
    would be slow.
    """
    if sieve.isascii():
        return sieve
    words = filter(None, _NON_ASCII_WORD.findall(sieve))
    escapes = sorted({escapes for word in words for escapes in _escapes(word)})
    plain = _bytewise(sieve, what, spell_class=lambda _: "(?s:.*)")
    return rf"(?:{plain})|(?i:\\u(?:{'|'.join(escapes)}))"


def _escapes(word: str) -> Iterator[str]:
    """Yield patterns for a word whose non-ASCII letters JSON has escaped.

    Each pattern matches the part of the word after the first `\\u`.
    """
    for form in product(*(_forms(letter, not letter.isascii()) for letter in word)):
        escaped = json.dumps("".join(form)).strip('"')
        yield escaped.partition(r"\u")[2].replace("\\", r"\\+")


def _bytewise(text: str, what: str, spell_class: Callable[[str], str] = str) -> str:
    """Return the UTF-8 bytes of a pattern as Latin-1, because patterns match bytes.

    Raise RedactionRuleError, which names `what`, for a lone surrogate.
    """
    try:
        return _spelled(text, spell_class).encode().decode("latin-1")
    except UnicodeEncodeError as error:
        raise RedactionRuleError(f"{what}: not valid UTF-8") from error


def _spelled(pattern: str, spell_class: Callable[[str], str]) -> str:
    """Return a pattern in which a non-ASCII letter may be decomposed: e and an accent.

    `spell_class` returns the pattern of a class with such letters. With `(?i` in the pattern, a
    letter may also have the other case: in bytes, RE2 ignores the case of ASCII letters only.
    """

    def spellings(found: re.Match[str]) -> str:
        letter = found[0]
        if len(letter) > 1:  # a class
            return letter if letter.isascii() else spell_class(letter)
        return f"(?:{'|'.join(_forms(letter, '(?i' in pattern))})"

    return pattern if pattern.isascii() else _CLASS_OR_LETTER.sub(spellings, pattern)


@cache
def _forms(letter: str, in_each_case: bool) -> tuple[str, ...]:
    cases = {letter, letter.lower(), letter.upper()} if in_each_case else {letter}
    return tuple(sorted({normalize(form, case) for case in cases for form in ("NFC", "NFD")}))


def _try_examples(rule: Rule) -> None:
    """Compile a rule and try its examples; raise RedactionRuleError if one fails.

    For built-in rules, only tests call this.
    """
    what = f"rule {rule.name!r}"
    if compiled(rule.pattern, rule.name).search(b"") is not None:
        raise RedactionRuleError(f"{what}: the pattern matches the empty text")
    if rule.is_token and compiled(rule.pattern, rule.name).groups:
        raise RedactionRuleError(f"{what}: the pattern of a token may have no groups: use (?:...)")
    compiled(rule.unless, rule.name)
    compiled(rule.sieve, rule.name)
    if rule.not_in and compiled(rule.not_in, rule.name).search(b"") is not None:
        raise RedactionRuleError(f"{what}: not_in matches the empty text")
    scanner = Scanner([rule])

    def found(example: str) -> list[bytes]:
        text = example.encode()
        return [text[s.start : s.end] for s in scanner.find(text, scanner.suspects(text))]

    for example in rule.examples:
        marked = [secret.encode() for secret in _MARKED.findall(example)]
        there = found(_MARKED.sub(r"\1", example))
        if not there or (marked and there != marked):
            raise RedactionRuleError(f"{what} does not find its own example {example!r}")
    for example in rule.counterexamples:
        if found(example):
            raise RedactionRuleError(f"{what} finds something in its counterexample {example!r}")
