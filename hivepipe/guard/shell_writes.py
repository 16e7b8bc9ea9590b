"""Where a shell command writes, as far as that can be read off it.

Words, quotes, redirections, here-documents and the commands that write files; not variables,
substitutions, functions, other programs. What cannot be read is told apart from what can.
On the hook path, when a shared root is set.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SEPARATORS = ";&|()\n"
_OPERATORS = (">>", ">|", "&>>", "&>", ">&", "<<<", "<<-", "<<", "<&", "<>", ">", "<")
_WRAPPERS = ("sudo", "env", "command", "nohup", "time", "exec", "then", "else", "do", "!", "{")

# Which arguments of a command are written: all of them, or the last.
_ALL = (
    *("touch", "mkdir", "rm", "rmdir", "unlink", "truncate", "shred", "tee", "chmod", "chown"),
    *("mv", "sed", "mkfifo"),
)
_LAST = ("cp", "ln", "install", "rsync", "scp")
_READING = (
    *(
        "cat",
        "ls",
        "cd",
        "pwd",
        "head",
        "tail",
        "less",
        "more",
        "wc",
        "grep",
        "egrep",
        "rg",
        "find",
    ),
    *("stat", "file", "du", "df", "tree", "diff", "cmp", "sort", "uniq", "cut", "jq", "echo"),
    *("printf", "test", "[", "[[", "md5sum", "sha256sum", "realpath", "readlink", "basename"),
    *("dirname", "awk", "xxd", "od", "strings", "true", "false", "export", "set"),
)


class Word:
    """A word of a command; `literal`: it stands for itself."""

    __slots__ = ("literal", "text")

    def __init__(self, text: str, literal: bool) -> None:
        """Quotes are resolved."""
        self.text = text
        self.literal = literal


class Writes:
    """What a command writes: paths as they stand there, and whether there may be more."""

    __slots__ = ("is_readable", "paths")

    def __init__(self) -> None:
        """Nothing yet."""
        self.paths: list[tuple[str, str]] = []  # folder it is relative to, path
        self.is_readable = True


def writes_of(command: str, cwd: str) -> Writes:
    """Return what a command writes when it is run in `cwd`."""
    found = Writes()
    for words, targets in _simple_commands(command):
        for target in targets:
            _add(found, cwd, target)
        words = _without_wrappers(words)
        if not words:
            continue
        name, arguments = words[0], words[1:]
        if not name.literal:
            found.is_readable = False
            continue
        program = name.text.rsplit("/", 1)[-1]
        if program == "cd":
            if arguments and arguments[-1].literal:
                path = arguments[-1].text
                cwd = path if path.startswith("/") else f"{cwd}/{path}"
            else:
                found.is_readable = False
        else:
            _add_arguments(found, cwd, program, arguments)
    return found


def _add_arguments(found: Writes, cwd: str, program: str, arguments: list[Word]) -> None:
    files = [word for word in arguments if not word.text.startswith("-")]
    options = [word.text for word in arguments if word.text.startswith("-")]
    if program == "dd":
        files = [Word(w.text[3:], w.literal) for w in files if w.text.startswith("of=")]
    elif program == "sed" and not any(
        option.startswith(("-i", "--in-place")) for option in options
    ):
        files = []
    elif program in _LAST:
        into = [word for word in arguments if word.text.startswith("--target-directory=")]
        files = [Word(into[0].text.partition("=")[2], into[0].literal)] if into else files[-1:]
        if "-t" in options:  # the folder comes first
            place = next(n for n, word in enumerate(arguments) if word.text == "-t")
            files = arguments[place + 1 : place + 2]
    elif program not in _ALL:
        found.is_readable = found.is_readable and program in _READING
        files = []
    for word in files:
        _add(found, cwd, word)


def _add(found: Writes, cwd: str, word: Word) -> None:
    if word.literal:
        found.paths.append((cwd, word.text))
    else:
        found.is_readable = False


def _without_wrappers(words: list[Word]) -> list[Word]:
    """Leave out assignments, `sudo` and the like, with their options."""
    at = 0
    while at < len(words):
        text = words[at].text
        is_assignment = "=" in text and text.partition("=")[0].isidentifier()
        if not is_assignment and text not in _WRAPPERS and not (at and text.startswith("-")):
            break
        at += 1
    return words[at:]


Command = tuple[list[Word], list[Word]]  # its words, and what it redirects to


def _simple_commands(command: str) -> list[Command]:
    """Split a command line into simple commands."""
    found: list[Command] = [([], [])]
    operator = ""
    for token in _tokens(command):
        if token is None:
            found.append(([], []))
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


def _tokens(command: str) -> "Iterator[Word | str | None]":
    """Yield words, operators of redirections, and None where a simple command ends."""
    here_documents: list[str] = []
    operator = ""
    at = 0
    while at < len(command):
        before, operator = operator, ""
        if command[at] in " \t" or command.startswith("\\\n", at):
            operator = before
            at += 1 if command[at] in " \t" else 2
        elif command[at] == "#":
            at += len(command[at:].partition("\n")[0])
        elif operator := next((op for op in _OPERATORS if command.startswith(op, at)), ""):
            yield operator
            at += len(operator)
        elif command[at] in _SEPARATORS:
            yield None
            at += 1
            if command[at - 1] == "\n":
                at = _skip_here_documents(command, at, here_documents)
        else:
            word, at = _word(command, at)
            if before in ("<<", "<<-"):
                here_documents.append(word.text)
            if not (word.text.isdigit() and command[at : at + 1] in ("<", ">")):  # 2> file
                yield word


def _word(command: str, at: int) -> tuple[Word, int]:
    """Read one word from here on."""
    text = ""
    literal = True
    quote = ""
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
    return Word(text, literal), at


def _skip_here_documents(command: str, at: int, delimiters: list[str]) -> int:
    """Return where the command goes on after its here-documents."""
    while delimiters:
        delimiter = delimiters.pop(0)
        while at < len(command):
            line, newline, _ = command[at:].partition("\n")
            at += len(line) + len(newline)
            if line.lstrip("\t") == delimiter:
                break
    return at
