"""Split shell commands into words and operators, with quotes and here-documents.

Hooks import this module if a shared root is set.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SEPARATORS = ";&|()\n"
_OPERATORS = (">>", ">|", "&>>", "&>", ">&", "<<<", "<<-", "<<", "<&", "<>", ">", "<")


class Word:
    """A word of a command; `literal` is True if it contains no expansion."""

    __slots__ = ("inner", "literal", "text")

    def __init__(self, text: str, literal: bool, inner: "Sequence[str]" = ()) -> None:
        """`text` is the word without quotes, `inner` lists its command substitutions."""
        self.text = text
        self.literal = literal
        self.inner = inner


Command = tuple[list[Word], list[Word], int]  # words, targets of redirections, open subshells


def simple_commands(command: str) -> list[Command]:
    """Split a command line into simple commands."""
    found: list[Command] = [([], [], 0)]
    operator = ""
    level = 0
    tokens = list(_tokens(command))
    for at, token in enumerate(tokens):
        if isinstance(token, str) and token in _SEPARATORS:
            if token in "|&" and token not in (*tokens[at - 1 : at], *tokens[at + 1 : at + 2]):
                found[-1] = (*found[-1][:2], level + 1)  # in a subshell of its own
            # In `case`, a `)` ends a pattern.
            level = max(level + (token == "(") - (token == ")"), 0)
            found.append(([], [], level))
        elif isinstance(token, str):
            operator = token
            continue
        elif ">" in operator:
            is_descriptor = operator == ">&" and (token.text.isdigit() or token.text == "-")
            if not is_descriptor:
                found[-1][1].append(token)
        elif not operator:
            found[-1][0].append(token)
        operator = ""
    return found


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
        elif operator := next((op for op in _OPERATORS if command.startswith(op, at)), ""):
            yield operator
            at += len(operator)
        elif command[at] in _SEPARATORS:
            yield command[at]
            at += 1
            if command[at - 1] == "\n":
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
        elif character in "$`" and command[at + 1 : at + 2] not in ("", " "):
            literal = False
            run, at = _substitution(command, at)
            inner += run
            text += character
        elif quote:
            if character == '"':
                quote = ""
            else:
                text += character
        elif character in "'\"":
            quote = character
        elif character in " \t<>" or character in _SEPARATORS:
            break
        else:
            literal = literal and character not in "*?["
            text += character
        at += 1
    is_file = text[:1] == "~" != command[begin]  # as in '~'
    return Word("./" * is_file + text, literal or text in ("[", "[["), inner), at


def _substitution(command: str, at: int) -> tuple[list[str], int]:
    """Return the commands in the $( or ` at `at`, [] for a variable, and the position after it."""
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
