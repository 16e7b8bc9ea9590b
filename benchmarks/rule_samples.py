"""Read the samples with which other scanners test their rules, from checkouts of their sources.

The samples are not stored here, because others own them, and secret scanners would report them.
"""

import random
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse  # the parser of `re`


class Sample(NamedTuple):
    """A text with a secret, and the secrets if the source names them."""

    rule: str
    text: str
    secrets: tuple[str, ...] = ()


def of_gitleaks(folder: Path) -> Iterator[Sample]:
    """Yield the samples that gitleaks tests its rules with when it generates its configuration."""
    base = folder / "cmd" / "generate" / "config"
    templates = _templates((base / "utils" / "generate.go").read_text())
    chance = random.Random(1)

    def samples(identifier: str, secret: str) -> list[Sample]:
        words = {"{i}": identifier, "{I}": identifier.upper(), "{s}": secret}
        return [
            Sample("", re.sub(r"\{[iIs]\}", lambda found: words[found[0]], text), (secret,))
            for text in templates
        ]

    known: dict[str, Callable[..., Any]] = {
        "utils.GenerateSampleSecrets": samples,
        "utils.GenerateSampleSecret": lambda name, secret: Sample(
            "", f'{name}_api_token = "{secret}"', (secret,)
        ),
        "secrets.NewSecret": lambda pattern: random_match(pattern, chance),
        "newPlausibleSecret": lambda pattern: random_match(pattern, chance),
        "utils.Numeric": "[0-9]{{{}}}".format,
        "utils.Hex": "[a-f0-9]{{{}}}".format,
        "utils.AlphaNumeric": "[a-z0-9]{{{}}}".format,
        "utils.AlphaNumericExtendedShort": "[a-z0-9_-]{{{}}}".format,
        "utils.AlphaNumericExtended": "[a-z0-9=_\\-]{{{}}}".format,
        "utils.AlphaNumericExtendedLong": "[a-z0-9\\/=_\\+\\-]{{{}}}".format,
        "utils.Hex8_4_4_4_12": lambda: "[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}",
    }
    for path in sorted((base / "rules").glob("*.go")):
        for body in path.read_text().split("\nfunc ")[1:]:
            name = body.partition("(")[0]
            env = _assigned(body, known)
            for found in env.get("tps", env.get("tp", ())):
                if isinstance(found, str):
                    yield Sample(name, found)
                else:
                    yield found._replace(rule=name)


def of_trufflehog(folder: Path) -> Iterator[Sample]:
    """Yield the inputs in which a test of a trufflehog detector expects a secret."""
    for path in sorted((folder / "pkg" / "detectors").rglob("*_test.go")):
        text = path.read_text()
        env = _assigned(text, {})
        for case in re.finditer(r"\binput:\s*", text):
            wanted = re.compile(r"\b(?:want|input):\s*").search(text, case.end())
            if wanted is None or "want" not in wanted[0]:
                continue
            try:
                said = _Go(text, case.end(), env).expression()
                secrets = _Go(text, wanted.end(), env).expression()
            except _UnknownError:
                continue
            if isinstance(said, str) and isinstance(secrets, list) and secrets:
                known = tuple(s for s in secrets if isinstance(s, str) and s in said)
                yield Sample(path.parent.name, said, known)


def of_noseyparker(folder: Path) -> Iterator[Sample]:
    """Yield the examples of the noseyparker rules that find secrets."""
    for path in sorted(folder.rglob("builtin/rules/*.yml")):
        for rule in yaml.safe_load(path.read_text()).get("rules", ()):
            if "secret" in rule.get("categories", ()):
                for text in rule.get("examples", ()):
                    yield Sample(rule["id"], text, _captured(rule["pattern"], text))


def _captured(pattern: str, text: str) -> tuple[str, ...]:
    """Return the secret that the rule's own pattern finds, if Python can compile it."""
    try:
        found = re.search(pattern, text)
    except re.error:
        return ()
    return tuple(filter(None, found.groups())) if found else ()


SOURCES = {"gitleaks": of_gitleaks, "trufflehog": of_trufflehog, "noseyparker": of_noseyparker}


# ---- Go expressions, as far as the tests use them


class _UnknownError(Exception):
    """The expression uses something that the parser does not know."""


_TOKEN = re.compile(
    r'\s*(?:(?://[^\n]*|/\*.*?\*/)\s*)*(`[^`]*`|"(?:[^"\\\n]|\\.)*"|[\w.]+|\[\]string|\[\]|.)',
    re.DOTALL,
)


class _Go:
    """A parser of expressions: strings, lists of strings, calls of known functions, sums."""

    def __init__(self, text: str, start: int, env: dict[str, Any]) -> None:
        self._text, self._at, self._env = text, start, env

    def expression(self) -> Any:
        value = self._term()
        while self._take("+"):
            other = self._term()
            if not isinstance(value, str) or not isinstance(other, str):
                raise _UnknownError
            value += other
        return value

    def _term(self) -> Any:
        token = self._next()
        if token[0] == "`":
            return token[1:-1]
        if token[0] == '"':
            return token[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
        if token == "[]string":
            return self._items("{", "}")
        if token == "nil":
            return []
        if self._peek() == "(":
            return self._called(token, self._items("(", ")"))
        if token not in self._env:
            raise _UnknownError
        return self._env[token]

    def _called(self, name: str, arguments: list[Any]) -> Any:
        if name == "append":
            return [*arguments[0], *arguments[1:]]
        if name == "fmt.Sprintf":
            texts = iter(arguments[1:])
            return re.sub("%[svdq]", lambda _: str(next(texts)), arguments[0])
        if name not in self._env:
            raise _UnknownError
        return self._env[name](*arguments)

    def _items(self, opening: str, closing: str) -> list[Any]:
        if not self._take(opening):
            raise _UnknownError
        items: list[Any] = []
        while not self._take(closing):
            value = self.expression()
            if self._take("..."):
                items += value
            else:
                items.append(value)
            self._take(",")
        return items

    def _peek(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        return found[1] if found else ""

    def _next(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        if not found:
            raise _UnknownError
        self._at = found.end()
        return found[1]

    def _take(self, token: str) -> bool:
        is_next = self._peek() == token
        if is_next:
            self._next()
        return is_next


def _assigned(body: str, known: dict[str, Callable[..., Any]]) -> dict[str, Any]:
    """Return the variables of a function or a file whose values are known."""
    env: dict[str, Any] = dict(known)
    for found in re.finditer(r"^\s*(?:const |var )?(\w+)\s*:?=\s*", body, re.MULTILINE):
        try:
            env[found[1]] = _Go(body, found.end(), env).expression()
        except (_UnknownError, TypeError, StopIteration):
            continue
    return env


def _templates(source: str) -> list[str]:
    start = source.index("map[string]string{")
    found = re.finditer(
        r'^\s*"[^"]*":\s*(`[^`]*`|"(?:[^"\\]|\\.)*"),', source[start:], re.MULTILINE
    )
    return [str(_Go(match[1], 0, {}).expression()) for match in found]


# ---- random texts that match a pattern


def random_match(pattern: str, chance: random.Random) -> str:
    """Return a random text that a pattern without look-around matches."""
    flags = re.IGNORECASE if pattern.startswith("(?i)") else 0
    return "".join(_letters(sre_parse.parse(pattern, flags), chance))


def _letters(parsed: Any, chance: random.Random) -> Iterator[str]:
    for kind, value in parsed:
        name = str(kind)
        if name == "LITERAL":
            yield chr(value)
        elif name == "IN":
            yield chance.choice(_alphabet(value))
        elif name == "ANY":
            yield chance.choice("abcxyz0189")
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            for _ in range(chance.randint(least, min(int(most), least + 10))):
                yield from _letters(inner, chance)
        elif name == "SUBPATTERN":
            yield from _letters(value[-1], chance)
        elif name == "BRANCH":
            yield from _letters(chance.choice(value[1]), chance)


def _alphabet(items: Any) -> str:
    letters = ""
    for kind, value in items:
        if str(kind) == "LITERAL":
            letters += chr(value)
        elif str(kind) == "RANGE":
            letters += "".join(map(chr, range(value[0], value[1] + 1)))
        elif str(kind) == "CATEGORY":
            letters += "0123456789" if "DIGIT" in str(value) else "abcxyzABCXYZ0189_"
    return letters
