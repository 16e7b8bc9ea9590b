"""Split shell commands into words and operators, with quotes and here-documents.

Hooks import this module if a shared root is set.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SEPARATORS = ("&&", "||", "|&", ";", "&", "|", "(", ")", "\n")
_REDIRECTIONS = (">>", ">|", "&>>", "&>", ">&", "<<<", "<<-", "<<", "<&", "<>", ">", "<")
_OPERATORS = (*_REDIRECTIONS, *_SEPARATORS)  # `&>` and `>&` before `&`
_ENDS_LIST = (";", "&", "\n")
_PROCESS = ("<(", ">(")  # a word that stands for the input or output of a command
_ENDS_WORD = " \t<>;&|()\n"
# The words that open a compound command, with the word that closes it.
_CLOSED_BY = {
    **dict.fromkeys(("while", "until", "for", "select"), "done"),
    "if": "fi",
    "case": "esac",
    "{": "}",
}
_KEYWORDS = {*_CLOSED_BY, *_CLOSED_BY.values(), "then", "elif", "else", "do", "!", "coproc"}
_BEFORE_KEYWORDS = ("", "time", "time -p")
_WITH_WORDS = ("for", "select", "case")  # no command follows on the same line


class Word:
    """A word of a command; `literal` is True if it contains no expansion."""

    __slots__ = ("inner", "literal", "text")

    def __init__(self, text: str, literal: bool, inner: "Sequence[str]" = ()) -> None:
        """`text` is the word without quotes, with `$` in place of each substitution.

        `inner` lists the commands of the substitutions.
        """
        self.text = text
        self.literal = literal
        self.inner = inner


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


def simple_commands(command: str) -> list[Command]:
    """Split a command line into simple commands."""
    found: list[Command] = [([], [], [], [])]
    nested = [_Compound("", 0)]
    operator = ""
    for token in _tokens(command):
        words, targets, inner, _ = found[-1]
        if isinstance(token, str):
            is_in_test = words and words[0].text == "[[" and words[-1].text != "]]"
            if is_in_test and token not in _ENDS_LIST:  # as in `[[ a > b && (c || d) ]]`
                continue
            operator = token if token in _REDIRECTIONS else ""
            if not operator:
                _separate(found, nested, token)
            continue
        inner += token.inner
        if ">" in operator:
            is_descriptor = operator == ">&" and (token.text.isdigit() or token.text == "-")
            if not is_descriptor:
                targets.append(token)
        elif not operator and not _is_keyword(found, nested, token.text):
            words.append(token)
        operator = ""
    return found


def _separate(found: list[Command], nested: list[_Compound], separator: str) -> None:
    """End the last command, and begin another one."""
    words, *_, back = found[-1]
    inner = nested[-1]
    if separator == "(":
        if len(words) == 1:  # the name of a function
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
    if text not in _KEYWORDS or " ".join(word.text for word in words[:3]) not in _BEFORE_KEYWORDS:
        return False
    if text in _CLOSED_BY:
        nested.append(_Compound(_CLOSED_BY[text], len(found) - 1))
    elif text == nested[-1].closer:
        nested.pop()
    return text not in _WITH_WORDS


def _tokens(command: str) -> "Iterator[Word | str]":
    """Yield words, redirection operators, and the separators of simple commands."""
    here_documents: list[str] = []
    operator = ""
    at = 0
    while at < len(command):
        before, operator = operator, ""
        if command[at] in " \t" or command.startswith("\\\n", at):
            operator = before
            at += 1 if command[at] in " \t" else 2
        elif command[at] == "#":
            at = _end_of_line(command, at)
        elif not command.startswith(_PROCESS, at) and (
            operator := next((op for op in _OPERATORS if command.startswith(op, at)), "")
        ):
            yield operator
            at += len(operator)
            if operator == "\n":
                at = _skip_here_documents(command, at, here_documents)
        else:
            word, at = _word(command, at)
            if before in ("<<", "<<-"):
                here_documents.append(word.text)
            if not (word.text.isdigit() and command[at : at + 1] in ("<", ">")):  # as in `2> file`
                yield word


def _word(command: str, at: int) -> tuple[Word, int]:
    """Read one word; return the word and the position after it."""
    begin = at
    text = ""
    literal = True
    quote = ""
    inner: list[str] = []
    while at < len(command):
        character = command[at]
        if quote == "'":
            if character == "'":
                quote = ""
            else:
                text += character
        elif character == "\\" and at + 1 < len(command):
            at += 1
            text += command[at] if command[at] != "\n" else ""
        elif (character in "$`" and command[at + 1 : at + 2] not in ("", " ")) or (
            not quote and command.startswith(_PROCESS, at)
        ):
            literal = False
            run, at = _substitution(command, at)
            inner += run
            text += "$"
        elif quote:
            if character == '"':
                quote = ""
            else:
                text += character
        elif character in "'\"":
            quote = character
        elif character in _ENDS_WORD:
            break
        else:
            literal = literal and character not in "*?["
            text += character
        at += 1
    is_file = text[:1] == "~" != command[begin]  # as in '~'
    return Word("./" * is_file + text, literal or text in ("[", "[["), inner), at


def _substitution(command: str, at: int) -> tuple[list[str], int]:
    """Return the commands in the substitution at `at`, and the position at which it ends.

    For a variable, return [] and `at`.
    """
    if command[at] == "`":
        end = command.find("`", at + 1)
        end = end if end >= 0 else len(command)
        return [command[at + 1 : end]], end
    if command[at + 1] != "(":
        return [], at
    begin, depth, quote = at + 2, 0, ""
    while at < len(command):
        character = command[at]
        if character == "\\" and quote != "'":
            at += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
            if not depth:
                break
        at += 1
    return [command[begin:at]], at


def _skip_here_documents(command: str, at: int, delimiters: list[str]) -> int:
    """Return the position after the here-documents that begin at `at`."""
    while delimiters:
        delimiter = delimiters.pop(0)
        while at < len(command):
            begin, end = at, _end_of_line(command, at)
            at = end + 1
            if command[begin:end].lstrip("\t") == delimiter:
                break
    return at


def _end_of_line(command: str, at: int) -> int:
    end = command.find("\n", at)
    return end if end >= 0 else len(command)
