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
from hivepipe.guard.shell_variables import Loop, Variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

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
SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_WORDS_BEFORE_BODY = 2  # `function NAME`, `for ((...))`
_WITH_WORDS = ("for", "select", "case")  # no command follows on the same line


class Command:
    """A simple command.

    `targets` are those of redirections, `inner` the commands in substitutions, `stdin` the text of
    a here-document or None. `is_piped` means that the next command reads the output.

    `back` lists numbers of earlier commands. If it has some, a subshell ends with the command:
    `( )`, a part of a pipeline, or commands before `&`. The working folder then becomes that of
    the command with the last number.
    """

    __slots__ = ("back", "inner", "is_piped", "number", "stdin", "targets", "words")

    def __init__(self, number: int) -> None:
        self.number = number
        self.words: list[Word] = []
        self.targets: list[Word] = []
        self.inner: list[str] = []
        self.back: list[int] = []
        self.stdin: str | None = None
        self.is_piped = False

    def is_used(self) -> bool:
        return bool(self.words or self.back or self.targets or self.inner) or self.is_piped


class _Compound:
    """A compound command that is not closed yet.

    `closer` is the word that will close it. `begin` is the number of its first command. `line` and
    `part` are the numbers of the first command of the current `&&` list and of the current part of
    a pipeline. `loop` is a `for` loop with words, or None.
    """

    __slots__ = ("begin", "closer", "is_piped", "line", "loop", "part")

    def __init__(self, closer: str, begin: int) -> None:
        self.closer = closer
        self.begin = self.line = self.part = begin
        self.is_piped = False
        self.loop: Loop | None = None


def simple_commands(command: str, variables: Variables) -> "Iterator[Command]":
    """Split a command line into simple commands.

    Each is read with the `variables` that are known when the one before it was taken.
    """
    now = Command(0)
    nested = [_Compound("", 0)]
    operator = separator = ""
    for token in _tokens(command, variables):
        if isinstance(token, str):
            operator = token if token in _REDIRECTIONS else ""
            if not operator:
                is_sure = len(nested) == 1 and separator not in _IF and token not in _IN_SUBSHELL
                nested[-1].loop = variables.set(now.words, is_sure) or nested[-1].loop
                following = _separate(now, nested, token)
                separator = token
                if following != now.number:
                    yield now
                    now = Command(following)
            continue
        now.inner += token.inner
        if ">" in operator:
            is_descriptor = operator == ">&" and (token.text.isdigit() or token.text == "-")
            if not is_descriptor:
                now.targets.append(token)
        elif operator == "<<<":
            now.stdin = token.text
        elif not operator and not _is_keyword(now, nested, token.text, variables):
            now.words.append(token)
        operator = ""
    yield now


def _separate(now: Command, nested: list[_Compound], separator: str) -> int:
    """End a command; return the number of the next one, or of this one if it is empty."""
    words, back = now.words, now.back
    inner = nested[-1]
    if separator == "(":
        if len(words) == 1 or (words and words[0].text == "function"):  # the name of a function
            words.clear()
        nested.append(_Compound(")", now.number + now.is_used()))
    elif separator == ")" == inner.closer:
        back.append(inner.begin)
        nested.pop()
    elif separator == ")" and inner.closer == "esac":
        words.clear()  # they are a pattern of `case`, not a command
        inner.is_piped = False
    else:
        is_pipe = now.is_piped = separator in ("|", "|&")
        if inner.is_piped or is_pipe:
            back.append(inner.part)
        if separator == "&":
            back.append(inner.line)
        inner.is_piped = is_pipe
        inner.part = now.number + now.is_used()
        if separator in _ENDS_LIST:
            inner.line = inner.part
    return now.number + now.is_used()


def _is_keyword(now: Command, nested: list[_Compound], text: str, variables: Variables) -> bool:
    """Tell whether a word is a keyword without a command of its own.

    A compound command that the word opens is added to `nested`. One that it closes is removed,
    unless it is a loop that is read once more.
    """
    words = now.words
    if len(words) == _WORDS_BEFORE_BODY and (words[0].text == "function" or words[1].text == "(("):
        words.clear()
    if text not in _KEYWORDS or " ".join(word.text for word in words[:3]) not in _BEFORE_KEYWORDS:
        return False
    if text in _CLOSED_BY:
        nested.append(_Compound(_CLOSED_BY[text], now.number))
    elif text == nested[-1].closer and not variables.repeats(nested[-1].loop):
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
                yield from (token for document in documents for token in ("<<<", document))
            variables.place = (at, len(here_documents))
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
            if text == "done" and variables.next_place:
                at, waiting = variables.next_place
                del here_documents[waiting:]
                variables.next_place = None
