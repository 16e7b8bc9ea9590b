"""Split shell commands into simple commands, with compound commands and variables.

Hooks import this module if a shared root is set.
"""

from hivepipe.guard.shell_text import (
    ENDS_WORD,
    PROCESS,
    Values,
    Word,
    end_of_arithmetic,
    end_of_line,
    expanded,
    read_here_documents,
    read_words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SEPARATORS = ("&&", "||", "|&", ";", "&", "|", "(", ")", "\n")
_REDIRECTIONS = (">>", ">|", "&>>", "&>", ">&", "<<<", "<<-", "<<", "<&", "<>", ">", "<")
# By their first characters; `&>` and `>&` come before `&`.
_OPERATORS = {
    sign: tuple(op for op in (*_REDIRECTIONS, *_SEPARATORS) if op[0] == sign)
    for sign in "<>;&|()\n"
}
_ENDS_LIST = (";", "&", "\n")
_IF = ("&&", "||")
_IN_SUBSHELL = ("|", "|&", "&")  # the command before them runs in a subshell
# The words that open a compound command, with the word that closes it.
_CLOSED_BY = {
    **dict.fromkeys(("while", "until", "for", "select"), "done"),
    "if": "fi",
    "case": "esac",
    "{": "}",
}
_KEYWORDS = {*_CLOSED_BY, *_CLOSED_BY.values(), "then", "elif", "else", "do", "!", "coproc"}
_BEFORE_KEYWORDS = ("", "time", "time -p")
_SETTING = ("export", "readonly", "declare", "typeset", "local")
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_BETWEEN_NAMES = dict.fromkeys(map(ord, " \t\n;&|()<>{}[]=+-*/%#!?.,:~^@\\'\"`"), " ")
_FIRST_OF_FOR = 3  # in `for NAME in WORD`
_MOST_TURNS = 50
_MOST_READ = 40_000  # characters that loops may add to a command
_WORDS_BEFORE_BODY = 2  # `function NAME`, `for ((...))`
_MOST_EXPANDED = 500_000  # characters that variables may add to a command
_WITH_WORDS = ("for", "select", "case")  # no command follows on the same line


class Command:
    """A simple command.

    `targets` are those of redirections, `inner` the commands in substitutions, `stdin` the text of
    a here-document or None. `is_piped` means that the next command reads the output.

    `back` lists numbers of earlier commands. If it has some, a subshell ends with the command:
    `( )`, a part of a pipeline, or commands before `&`. The working folder then becomes that of
    the command with the last number.
    """

    __slots__ = ("back", "inner", "is_piped", "stdin", "targets", "words")

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.targets: list[Word] = []
        self.inner: list[str] = []
        self.back: list[int] = []
        self.stdin: str | None = None
        self.is_piped = False


class Turns:
    """The words that the `for` loops of a command take when it is read once more.

    A command is read for each combination of the loops' words, unless there are too many.
    """

    __slots__ = ("_most", "_turn", "count")

    def __init__(self, command: str, turn: int) -> None:
        self._turn = turn
        self._most = min(_MOST_TURNS, _MOST_READ // (len(command) + 1) + 1)
        self.count = 1  # the combinations of the loops so far

    def choice(self, words: list[Word]) -> Word | None:
        """Return the word of a loop in this turn, or None."""
        before, self.count = self.count, self.count * len(words)
        if self.count > self._most:
            self.count = before
            return None
        return words[self._turn // before % len(words)] if words else None


class _Compound:
    """A compound command that is not closed yet.

    `closer` is the word that will close it. `begin` is the number of its first command. `line` and
    `part` are the numbers of the first command of the current `&&` list and of the current part of
    a pipeline.
    """

    __slots__ = ("begin", "closer", "is_piped", "line", "part")

    def __init__(self, closer: str, begin: int) -> None:
        self.closer = closer
        self.begin = self.line = self.part = begin
        self.is_piped = False


class Variables:
    """The variables that a command line surely sets, once: to plain words, or in a `for` loop.

    A variable that is set again, read or unset is unknown. A value is short enough for each `$` of
    the command.
    """

    __slots__ = ("_command", "_longest", "_named_once", "turns", "values")

    def __init__(self, command: str, values: Values, turns: Turns) -> None:
        self.values = dict(values)
        self.turns = turns
        self._command = command
        self._longest = 0
        self._named_once: set[str] | None = None

    def set(self, words: list[Word], is_sure: bool) -> None:
        """Add the variables that a simple command sets; `is_sure` means that it runs."""
        first = words[0].text if words else ""
        if first == "for":
            if len(words) > _FIRST_OF_FOR:
                choice = self.turns.choice(words[_FIRST_OF_FOR:])
                self._set(words[1].text, [choice] if choice else [])
        elif is_sure and first == "set" and len(words) > 1 and words[1].text == "--":
            self.values |= positional(words[2:])
        elif is_sure and (first in _SETTING or "=" in first):
            given = [w for w in words if w.text not in _SETTING and w.text[:1] != "-"]
            if all("=" in word.text for word in given):  # not if a command follows
                for word in given:
                    name, _, value = word.text.partition("=")
                    self._set(name, word.elements or [Word(value, word.literal)], word.elements)

    def move(self, folder: str, before: str) -> None:
        """Set the variables of the working folder and the one before it; "" is unknown."""
        for name, value in (("PWD", folder), ("OLDPWD", before)):
            self.values.pop(name, None)
            if value:
                self.values[name] = [Word(value, True)]

    def _set(self, name: str, words: "Sequence[Word]", elements: "Sequence[Word]" = ()) -> None:
        if self._named_once is None:
            self._named_once = _named_once(self._command)
            self._longest = _MOST_EXPANDED // (self._command.count("$") + 1)
        self.values.pop(name, None)
        texts = [word.text for word in words]
        is_short = 0 < sum(map(len, texts)) <= self._longest - len(texts)
        # A shell may expand `~`.
        if is_short and name in self._named_once and not any("~" in text for text in texts):
            self.values[name] = words[:1]
            self.values |= _numbered(elements, f"{name}[", "]", 0)


def positional(words: "Sequence[Word]") -> Values:
    """Return the values of `$1`, `$2` and `$@`."""
    return _numbered(words, "", "", 1)


def _numbered(words: "Sequence[Word]", before: str, after: str, first: int) -> Values:
    values: Values = {f"{before}{n}{after}": [word] for n, word in enumerate(words, first)}
    return {**values, **dict.fromkeys((f"{before}@{after}", f"{before}*{after}"), words)}


def _named_once(command: str) -> set[str]:
    """Return the words of a command line that appear once without `$` or `for` before them."""
    once: set[str] = set()
    again: set[str] = set()
    of_loops: set[str] = set()
    before = ""
    for name in command.replace("${", "$").translate(_BETWEEN_NAMES).split():
        (of_loops if before == "for" else again if name in once else once).add(name)
        before = name
    return (once | of_loops) - again


def simple_commands(command: str, variables: Variables) -> "Iterator[Command]":
    """Split a command line into simple commands.

    Each is read with the `variables` that are known when the one before it was taken.
    """
    found = [Command()]
    nested = [_Compound("", 0)]
    operator = separator = ""
    for token in _tokens(command, variables):
        now = found[-1]
        if isinstance(token, str):
            operator = token if token in _REDIRECTIONS else ""
            if not operator:
                is_sure = len(nested) == 1 and separator not in _IF and token not in _IN_SUBSHELL
                variables.set(now.words, is_sure)
                _separate(found, nested, token)
                separator = token
                yield now
            continue
        now.inner += token.inner
        if ">" in operator:
            is_descriptor = operator == ">&" and (token.text.isdigit() or token.text == "-")
            if not is_descriptor:
                now.targets.append(token)
        elif operator == "<<<":
            now.stdin = token.text
        elif not operator and not _is_keyword(found, nested, token.text):
            now.words.append(token)
        operator = ""
    yield found[-1]


def _separate(found: list[Command], nested: list[_Compound], separator: str) -> None:
    """End the last command, and begin another one."""
    words, back = found[-1].words, found[-1].back
    inner = nested[-1]
    if separator == "(":
        if len(words) == 1 or (words and words[0].text == "function"):  # the name of a function
            words.clear()
        nested.append(_Compound(")", len(found)))
    elif separator == ")" == inner.closer:
        back.append(inner.begin)
        nested.pop()
    elif separator == ")" and inner.closer == "esac":
        words.clear()  # they are a pattern of `case`, not a command
        inner.is_piped = False
    else:
        is_pipe = found[-1].is_piped = separator in ("|", "|&")
        if inner.is_piped or is_pipe:
            back.append(inner.part)
        if separator == "&":
            back.append(inner.line)
        inner.is_piped = is_pipe
        inner.part = len(found)
        if separator in _ENDS_LIST:
            inner.line = len(found)
    found.append(Command())


def _is_keyword(found: list[Command], nested: list[_Compound], text: str) -> bool:
    """Tell whether a word is a keyword without a command of its own.

    A compound command that the word opens is added to `nested`. One that it closes is removed.
    """
    words = found[-1].words
    if len(words) == _WORDS_BEFORE_BODY and (words[0].text == "function" or words[1].text == "(("):
        words.clear()
    if text not in _KEYWORDS or " ".join(word.text for word in words[:3]) not in _BEFORE_KEYWORDS:
        return False
    if text in _CLOSED_BY:
        nested.append(_Compound(_CLOSED_BY[text], len(found) - 1))
    elif text == nested[-1].closer:
        nested.pop()
    return text not in _WITH_WORDS


def _tokens(command: str, variables: Variables) -> "Iterator[Word | str]":
    """Yield words, redirection operators, and the separators of simple commands.

    `(( ))` is one word. The text of a here-document follows `<<<`.
    """
    here_documents: list[tuple[str, bool]] = []
    operator = ""
    at = 0
    while at < len(command):
        character = command[at]
        before, operator = operator, ""
        if character in " \t" or command.startswith("\\\n", at):
            operator = before
            at += 1 if character in " \t" else 2
        elif character == "#":
            at = end_of_line(command, at)
        elif character == "(" and (end := end_of_arithmetic(command, at)):
            yield Word("((", True, expanded(command[at + 2 : end - 1]))
            at = end + 1
        elif character in ENDS_WORD and not command.startswith(PROCESS, at):
            operator = next(op for op in _OPERATORS[character] if command.startswith(op, at))
            at += len(operator)
            if operator == "\n" and here_documents:
                documents, at = read_here_documents(command, at, here_documents)
                for document in documents:
                    yield "<<<"
                    yield document
            yield operator
        else:
            begin = at
            words, at = read_words(command, at, variables.values)
            text = words[0].text
            if before in ("<<", "<<-"):
                here_documents.append((text, command[begin:at] == text))
            elif text.isdigit() and command[at : at + 1] in ("<", ">"):  # as in `2> file`
                continue
            yield from words
