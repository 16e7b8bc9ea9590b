"""Split shell commands into simple commands, with compound commands and variables.

Hooks import this module if a shared root is set.
"""

from hivepipe.guard.shell_text import (
    ENDS_WORD,
    PROCESS,
    Word,
    end_of_arithmetic,
    end_of_line,
    expanded,
    read_here_documents,
    read_words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SEPARATORS = ("&&", "||", "|&", ";", "&", "|", "(", ")", "\n")
_REDIRECTIONS = (">>", ">|", "&>>", "&>", ">&", "<<<", "<<-", "<<", "<&", "<>", ">", "<")
_OPERATORS = (*_REDIRECTIONS, *_SEPARATORS)  # `&>` and `>&` before `&`
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
_NOT_PLAIN = frozenset(" \t\n~$")  # a shell may split or expand a value with one of these
_SETTING = ("export", "readonly", "declare", "typeset", "local")
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_BETWEEN_NAMES = dict.fromkeys(map(ord, " \t\n;&|()<>{}[]=+-*/%#!?.,:~^@\\'\"`"), " ")
_WORDS_OF_FOR = 4  # `for NAME in WORD`
_WORDS_BEFORE_BODY = 2  # `function NAME`, `for ((...))`
_MOST_EXPANDED = 500_000  # characters that variables may add to a command
_WITH_WORDS = ("for", "select", "case")  # no command follows on the same line

# Words, targets of redirections, the commands in substitutions, and numbers of earlier commands.
# If there are such numbers, a subshell ends with the command: `( )`, a part of a pipeline, or
# commands before `&`. The working folder then becomes that of the command with the last number.
Command = tuple[list[Word], list[Word], list[str], list[int]]


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
    """The variables that a command line surely sets, once: to a plain text, or in a `for` loop.

    A variable that is set again, read or unset is unknown. A value is short enough for each `$` of
    the command.
    """

    __slots__ = ("_command", "_longest", "_named_once", "values")

    def __init__(self, command: str, values: "Mapping[str, Word]") -> None:
        self.values = dict(values)
        self._command = command
        self._longest = 0
        self._named_once: set[str] | None = None

    def set(self, words: list[Word], is_sure: bool) -> None:
        """Add the variables that a simple command sets; `is_sure` means that it runs."""
        first = words[0].text if words else ""
        if first == "for":
            if len(words) == _WORDS_OF_FOR:
                self._set(words[1].text, words[3])
        elif is_sure and (first in _SETTING or "=" in first):
            given = [w for w in words if w.text not in _SETTING and w.text[:1] != "-"]
            if all("=" in word.text for word in given):  # not if a command follows
                for word in given:
                    name, _, value = word.text.partition("=")
                    self._set(name, Word(value, word.literal))

    def _set(self, name: str, value: Word) -> None:
        if self._named_once is None:
            self._named_once = _named_once(self._command)
            self._longest = _MOST_EXPANDED // (self._command.count("$") + 1)
        self.values.pop(name, None)
        is_plain = 0 < len(value.text) <= self._longest and not _NOT_PLAIN & set(value.text)
        if is_plain and name in self._named_once:
            self.values[name] = value


def _named_once(command: str) -> set[str]:
    """Return the words of a command line that appear once without `$` before them."""
    once: set[str] = set()
    again: set[str] = set()
    for name in command.replace("${", "$").translate(_BETWEEN_NAMES).split():
        (again if name in once else once).add(name)
    return once - again


def simple_commands(command: str, variables: Variables) -> list[Command]:
    """Split a command line into simple commands."""
    found: list[Command] = [([], [], [], [])]
    nested = [_Compound("", 0)]
    operator = separator = ""
    for token in _tokens(command, variables):
        words, targets, inner, _ = found[-1]
        if isinstance(token, str):
            operator = token if token in _REDIRECTIONS else ""
            if not operator:
                is_sure = len(nested) == 1 and separator not in _IF and token not in _IN_SUBSHELL
                variables.set(words, is_sure)
                _separate(found, nested, token)
                separator = token
            continue
        inner += token.inner
        if ">" in operator:
            is_descriptor = operator == ">&" and (token.text.isdigit() or token.text == "-")
            if not is_descriptor:
                targets.append(token)
        elif operator == "<<<" and _reads_commands(words):
            inner.append(token.text)
        elif not operator and not _is_keyword(found, nested, token.text):
            words.append(token)
        operator = ""
    return found


def _reads_commands(words: list[Word]) -> bool:
    """Tell whether a shell reads its commands from stdin."""
    return bool(words) and words[0].text in SHELLS and all(w.text[:1] == "-" for w in words[1:])


def _separate(found: list[Command], nested: list[_Compound], separator: str) -> None:
    """End the last command, and begin another one."""
    words, *_, back = found[-1]
    inner = nested[-1]
    if separator == "(":
        if len(words) == 1 or (words and words[0].text == "function"):  # the name of a function
            words.clear()
        nested.append(_Compound(")", len(found)))
    elif separator == ")" == inner.closer:
        back.append(inner.begin)
        nested.pop()
    elif separator == ")" and inner.closer == "esac":
        words.clear()  # a pattern
        inner.is_piped = False
    else:
        is_pipe = separator in ("|", "|&")
        if inner.is_piped or is_pipe:
            back.append(inner.part)
        if separator == "&":
            back.append(inner.line)
        inner.is_piped = is_pipe
        inner.part = len(found)
        if separator in _ENDS_LIST:
            inner.line = len(found)
    found.append(([], [], [], []))


def _is_keyword(found: list[Command], nested: list[_Compound], text: str) -> bool:
    """Tell whether a word is a keyword without a command of its own.

    A compound command that the word opens is added to `nested`. One that it closes is removed.
    """
    words = found[-1][0]
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
            operator = next(op for op in _OPERATORS if command.startswith(op, at))
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
