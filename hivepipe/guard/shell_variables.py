"""The values of a shell's variables, as far as the text of a command shows them.

Hooks import this module if a shared root is set.
"""

from hivepipe.guard.shell_text import Values, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_SETTING = ("export", "readonly", "declare", "typeset", "local")
_EXPORTED = "export "  # before the name of a variable
_EMPTY_ENVIRONMENT = {"-i", "-", "--ignore-environment"}  # options of `env`
_BETWEEN_NAMES = dict.fromkeys(map(ord, " \t\n;&|()<>{}[]=+-*/%#!?.,:~^@\\'\"`"), " ")
_FIRST_OF_FOR = 3  # in `for NAME in WORD`
_MOST_IN_LOOPS = 10_000  # characters that loops may add to a command
_MOST_NESTED = 200_000  # characters in nested commands
_MOST_VALUES = 500
_MOST_NUMBERED = 20  # elements of an array that are known by their numbers
_MOST_EXPANDED = 500_000  # characters that variables may add to a command


class Limits:
    """What loops and nested commands may still add to a command.

    `loops` and `nested` count characters. `is_reached` means that a part was not read.
    """

    __slots__ = ("is_reached", "loops", "nested")

    def __init__(self) -> None:
        self.loops = _MOST_IN_LOOPS
        self.nested = _MOST_NESTED
        self.is_reached = False


class Loop:
    """A `for` loop: its variable, its words, the number of the current one, and its body."""

    __slots__ = ("name", "place", "turn", "words")

    def __init__(self, name: list[Word], words: list[Word], place: tuple[int, int]) -> None:
        self.name = name[0].text if name else ""
        self.words = words
        self.place = place
        self.turn = 0


class Variables:
    """The variables that a command line surely sets, once: to plain words, or in a `for` loop.

    A variable that is set again, read or unset is unknown. A value is short enough for each `$` of
    the command. The environment of other programs has the values of `export NAME`.

    `place` is the position after the last separator, with the number of here-documents that begin
    on later lines. The command is read on at `next_place` if this is not None.
    """

    __slots__ = (
        *("_command", "_exports_all", "_longest", "_named_once", "limits", "next_place", "place"),
        "values",
    )

    def __init__(self, command: str, values: Values, limits: Limits) -> None:
        self.values = dict(values)
        self.limits = limits
        self.place = (0, 0)
        self.next_place: tuple[int, int] | None = None
        self._exports_all = False
        self._command = command
        self._longest: int | None = None
        self._named_once: set[str] | None = None

    def set(self, words: list[Word], is_sure: bool) -> "Loop | None":
        """Add the variables that a simple command sets; return the loop that it begins, or None.

        `is_sure` means that the command runs.
        """
        first = words[0].text if words else ""
        if first == "for":
            loop = Loop(words[1:2], words[_FIRST_OF_FOR:], self.place)
            self._set(loop.name, loop.words[:1])
            return loop
        if first in ("set", "shift"):
            self._set_for_all(words, is_sure)
        elif is_sure and (first in _SETTING or "=" in first):
            given = [w for w in words if w.text not in _SETTING and w.text[:1] != "-"]
            options = {w.text for w in words if w.text[:1] == "-"}
            exports = first == "export" or any("x" in text for text in options)
            if first == "export":
                for word in given:
                    if word.text in self.values:
                        self.values[_EXPORTED + word.text] = self.values[word.text]
            elif not all("=" in word.text for word in given):  # a command follows
                return None
            for word in given:
                name, equals, value = word.text.partition("=")
                if equals:
                    given_words = word.elements or [Word(value, word.literal)]
                    self._set(name, given_words, word.elements, exports and "-n" not in options)
        return None

    def _set_for_all(self, words: list[Word], is_sure: bool) -> None:
        """Handle `set` and `shift`."""
        options = [word.text for word in words[1:]]
        if words[0].text == "set" and options[:1] != ["--"]:
            if any(text == "allexport" or (text[:1] in "-+" and "a" in text) for text in options):
                self._exports_all = is_sure and options[0][:1] == "-"
            return
        is_set = words[0].text == "set"
        given = words[2:] if is_set else self.values.get("@", ())[1:_MOST_NUMBERED]
        for name in [name for name in self.values if name in "@*" or name.isdigit()]:
            del self.values[name]
        is_known = is_set or (not options and len(given) < _MOST_NUMBERED - 1)
        if is_sure and is_known and self._is_short(given):
            self.values |= positional(given)

    def repeats(self, loop: "Loop | None") -> bool:
        """Tell whether the body of a loop is read once more, with the next word of the loop."""
        if not loop or loop.turn + 1 >= len(loop.words):
            return False
        length = self.place[0] - loop.place[0]
        if length > self.limits.loops:
            self.limits.is_reached = True
            return False
        self.limits.loops -= length
        loop.turn += 1
        self._set(loop.name, loop.words[loop.turn : loop.turn + 1])
        self.next_place = loop.place
        return True

    def move(self, folder: str, before: str) -> None:
        """Set the variables of the working folder and the one before it; "" is unknown."""
        for name, value in (("PWD", folder), ("OLDPWD", before)):
            self.values.pop(name, None)
            if value:
                self.values[name] = [Word(value, True)]

    def _set(
        self,
        name: str,
        words: "Sequence[Word]",
        elements: "Sequence[Word]" = (),
        is_exported: bool = False,
    ) -> None:
        if self._named_once is None:
            self._named_once = _named_once(self._command)
        self.values.pop(name, None)
        exported = self.values.pop(_EXPORTED + name, None)
        # A shell may expand `~`.
        if (
            name in self._named_once
            and any(word.text for word in words)
            and not any("~" in word.text for word in words)
            and len(self.values) < _MOST_VALUES
            and self._is_short(words)
        ):
            self.values[name] = [Word(words[0].text, words[0].literal)]
            if elements:
                self.values |= _numbered(elements, f"{name}[", "]", 0)
            elif is_exported or exported is not None or self._exports_all:
                self.values[_EXPORTED + name] = self.values[name]

    def _is_short(self, words: "Sequence[Word]") -> bool:
        if self._longest is None:
            self._longest = _longest_value(self._command)
        return _size(words) <= self._longest


def _longest_value(command: str) -> int:
    """Return the length up to which a value fits each `$` of a command."""
    return _MOST_EXPANDED // (command.count("$") + 1)


def _size(words: "Sequence[Word]") -> int:
    return sum([len(word.text) + 1 for word in words])


def environment(values: Values, before: list[Word]) -> Values:
    """Return the variables of a shell that is run with the words `before` its name."""
    texts = [word.text for word in before]
    given = {} if _EMPTY_ENVIRONMENT & set(texts) else values
    exported: Values = {
        name.removeprefix(_EXPORTED): value
        for name, value in given.items()
        if name.startswith(_EXPORTED) and name.removeprefix(_EXPORTED) not in texts  # `env -u X`
    }
    for word in before:
        name, equals, value = word.text.partition("=")
        if equals and "~" not in value:
            exported[name] = [Word(value, word.literal)]
    return {**exported, **{_EXPORTED + name: value for name, value in exported.items()}}


def fitting(values: Values, command: str) -> Values:
    """Return the values that are short enough for each `$` of a command."""
    longest = _longest_value(command)
    return {name: words for name, words in values.items() if _size(words) <= longest}


def positional(words: "Sequence[Word]") -> Values:
    """Return the values of `$1`, `$2` and `$@`."""
    return _numbered(words, "", "", 1)


def _numbered(words: "Sequence[Word]", before: str, after: str, first: int) -> Values:
    numbered = enumerate(words[:_MOST_NUMBERED], first)
    values: Values = {f"{before}{n}{after}": [word] for n, word in numbered}
    return {**values, **dict.fromkeys((f"{before}@{after}", f"{before}*{after}"), words)}


def _named_once(command: str) -> set[str]:
    """Return the words of a command line that appear once, apart from `$X`, `for X`, `export X`."""
    once: set[str] = set()
    again: set[str] = set()
    apart: set[str] = set()
    before = ""
    for name in command.replace("${", "$").translate(_BETWEEN_NAMES).split():
        if before == "for" or (before == "export" and f"export {name}=" not in command):
            apart.add(name)
        else:
            (again if name in once else once).add(name)
        before = name
    return (once | apart) - again


def initial(home: str) -> Values:
    """Return the variables that a command finds."""
    value = [Word(home, literal=True)]
    return {"HOME": value, f"{_EXPORTED}HOME": value}
