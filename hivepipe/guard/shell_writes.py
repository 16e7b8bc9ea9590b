"""The paths that a shell command writes, as far as its text shows them.

Words, quotes, redirections, here-documents, nested commands and known commands that write files are
supported; variables, functions and other programs are not. Commands that cannot be analysed are
marked. Hooks import this module if a shared root is set.
"""

from hivepipe.guard.shell_words import Word, simple_commands

_WRAPPERS = (
    *("sudo", "doas", "env", "command", "builtin", "nohup", "time", "exec", "busybox"),
    *("nice", "ionice", "setsid", "stdbuf", "timeout"),
    *("if", "elif", "while", "until", "then", "else", "do", "!", "{"),
)
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_DEEPEST = 5  # levels of nested commands that are parsed

# Commands that write all of their arguments, or the last one.
_ALL = (
    *("touch", "mkdir", "rm", "rmdir", "unlink", "truncate", "shred", "tee", "chmod", "chown"),
    *("mv", "sed", "mkfifo"),
)
_LAST = ("cp", "ln", "install", "rsync", "scp")
_RECURSIVE = {"rm": "rR", "chmod": "R", "chown": "R"}  # the letters of the option
# Commands whose output file is named by an option.
_OUTPUT = {
    "curl": ("o", "--output"),
    "sort": ("o", "--output"),
    "wget": ("O", "--output-document"),
}
_READING = (
    *("cat", "ls", "cd", "pwd", "head", "tail", "less", "more", "wc", "grep", "egrep", "rg"),
    *("find", "stat", "file", "du", "df", "tree", "diff", "cmp", "sort", "uniq", "cut", "jq"),
    *("echo", "printf", "test", "[", "[[", "md5sum", "sha256sum", "realpath", "readlink"),
    *("basename", "dirname", "awk", "xxd", "od", "strings", "true", "false", "export", "set"),
    *("tr", "nl", "tac", "column", "paste", "comm", "join", "seq", "hexdump", "cksum", "sha1sum"),
    *("date", "sleep", "which", "type", "zcat", "zgrep", "read", "for", "done", "fi", "}", ":"),
    *("break", "continue", "return", "exit", "wait", "unset", "local"),
)


class Writes:
    """The paths that a command writes; `is_readable` is False if it can write other paths, too.

    `trees` lists the paths that are deleted, moved or changed with all that they contain.
    """

    __slots__ = ("is_readable", "paths", "trees")

    def __init__(self) -> None:
        self.paths: list[tuple[str, str]] = []  # the folder that it is relative to, the path
        self.trees: list[tuple[str, str]] = []
        self.is_readable = True


def writes_of(command: str, cwd: str, depth: int = 0) -> Writes:
    """Return the writes of a command that is run in `cwd`."""
    found = Writes()
    is_lost = False  # True after `cd $VAR`
    for words, targets in simple_commands(command):
        for word in [*words, *targets]:
            for inner in word.inner:
                _add_command(found, cwd, inner, depth)
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
        if program in ("cd", "pushd"):
            if arguments and arguments[-1].literal:
                path = arguments[-1].text
                is_whole = path.startswith(("/", "~"))
                cwd = path if is_whole else f"{cwd}/{path}"
                is_lost = is_lost and not is_whole
            else:
                found.is_readable = False
                is_lost = True
        elif (program in _SHELLS or program == "eval") and all(word.literal for word in arguments):
            _add_command(found, cwd, _command_given(program, arguments), depth)
        else:
            _add_arguments(found, cwd, program, arguments, depth)
            trees = _trees(program, arguments)
            found.trees += [(cwd, path) for path in trees if not is_lost or path[:1] in ("/", "~")]
    return found


def _add_command(found: Writes, cwd: str, command: str, depth: int) -> None:
    """Add the writes of a nested command. "" stands for an unknown command."""
    if not command or depth == _DEEPEST:
        found.is_readable = False
        return
    inner = writes_of(command, cwd, depth + 1)
    found.paths += inner.paths
    found.trees += inner.trees
    found.is_readable = found.is_readable and inner.is_readable


def _command_given(program: str, arguments: list[Word]) -> str:
    """Return the command string of `eval` or `sh -c`, or "" for a script or stdin."""
    texts = [word.text for word in arguments]
    if program == "eval":
        return " ".join(texts)
    for at, text in enumerate(texts[:-1]):
        if not text.startswith("-"):
            break
        if text.endswith("c") and not text.startswith("--"):
            return texts[at + 1]
    return ""


def _add_arguments(
    found: Writes, cwd: str, program: str, arguments: list[Word], depth: int
) -> None:
    files = [word for word in arguments if not word.text.startswith("-")]
    options = [word.text for word in arguments if word.text.startswith("-")]
    if program == "dd":
        files = [Word(w.text[3:], w.literal) for w in files if w.text.startswith("of=")]
    elif program in ("sed", "perl") and _in_place(options):
        pass
    elif program == "sed":
        files = [word for text in files for word in _of_w_command(text)]
    elif program == "find":
        files = _found_and_deleted(found, cwd, arguments, depth)
    elif program in _LAST and not (program == "install" and "-d" in options):
        has_target = program not in ("rsync", "scp")  # -t has another meaning in these programs
        target = _value_of("t", "--target-directory", arguments) if has_target else []
        files = target or files[-1:]
        if not has_target:
            files = [word for word in files if ":" not in word.text.partition("/")[0]]  # remote
    elif program in _OUTPUT:
        found.is_readable = found.is_readable and program in _READING
        files = [word for word in _value_of(*_OUTPUT[program], arguments) if word.text != "-"]
    elif program not in (*_ALL, "install"):
        writes = (
            (program == "awk" and any(">" in word.text for word in files[:1]))
            # The second one is written; a number is the value of an option.
            or (program in ("uniq", "xxd") and sum(not w.text.isdigit() for w in files) > 1)
            or (program in ("less", "tree") and "-o" in options)
        )
        found.is_readable = found.is_readable and program in _READING and not writes
        files = []
    for word in files:
        _add(found, cwd, word)


def _trees(program: str, arguments: list[Word]) -> list[str]:
    """Return the paths that `rm -r`, `mv`, `chmod -R` or `chown -R` changes as a whole.

    A pattern `a*` is returned as `a`, which it matches, and `a/*` as `a/`.
    """
    files = [word for word in arguments if not word.text.startswith("-")]
    options = [word.text for word in arguments if word.text.startswith("-")]
    if program == "mv":
        target = _value_of("t", "--target-directory", arguments)
        files = [word for word in files if word not in target] if target else files[:-1]
    elif program not in _RECURSIVE or not any(
        text == "--recursive" or (text[1:2] != "-" and set(text) & set(_RECURSIVE[program]))
        for text in options
    ):
        return []
    paths = [w.text if w.literal else w.text.rstrip("/").removesuffix("*") for w in files]
    return [path for path in paths if not set(path) & set("$`*?[")]


def _of_w_command(script: Word) -> list[Word]:
    """Return the absolute path that the last `w` of a script of `sed` writes."""
    before, command, path = script.text.rpartition("w ")
    path = path.strip(" }")
    is_text = before.rstrip("gpeIMm0123456789")[-1:].isalpha()  # `s/now /x/`, but not `s/a/b/gw f`
    return [Word(path, script.literal)] if command and not is_text and path.startswith("/") else []


def _in_place(options: list[str]) -> bool:
    """Tell whether `sed` or `perl` edits in place: -i, -i.bak, -Ei, but not the i of -es/i/o/."""
    for option in options:
        letters = option[1:] if not option.startswith("--") else ""
        before = letters.partition("i")[0]
        if option.startswith("--in-place") or (before != letters and not set(before) & set("efl")):
            return True
    return False


def _found_and_deleted(found: Writes, cwd: str, arguments: list[Word], depth: int) -> list[Word]:
    """Return the start points of a `find -delete`. Add the writes of commands after -exec.

    In these commands `{}` stands for the start points.
    """
    arguments = [word for word in arguments if word.text not in ("-H", "-L", "-P")]
    texts = [word.text for word in arguments]
    begins = next((n for n, text in enumerate(texts) if text.startswith(("-", "(", "!"))), 0)
    starts = arguments[:begins] or [Word(".", literal=True)]
    for at, text in enumerate(texts):
        if text in ("-exec", "-execdir", "-ok", "-okdir"):
            words = arguments[at + 1 :]
            end = next((n for n, word in enumerate(words) if word.text in (";", "+")), len(words))
            if words[:end]:
                program = words[0].text.rsplit("/", 1)[-1]
                given = [
                    w for word in words[1:end] for w in (starts if "{}" in word.text else [word])
                ]
                _add_arguments(found, cwd, program, given, depth)
        elif text.startswith(("-fprint", "-fls")):
            found.is_readable = False
    return starts if "-delete" in texts else []


def _value_of(letter: str, name: str, arguments: list[Word]) -> list[Word]:
    """Return the value of an option, as in `-t DIR`, `-rt DIR`, `-tDIR`, `--to DIR`, `--to=DIR`."""
    for at, word in enumerate(arguments):
        option, _, value = word.text.partition("=")
        if option == name:
            return [Word(value, word.literal)] if value else arguments[at + 1 : at + 2]
        if option.startswith("-") and not option.startswith("--"):
            if word.text.startswith(f"-{letter}") and word.text[2:]:
                return [Word(word.text[2:], word.literal)]
            if word.text.endswith(letter):
                return arguments[at + 1 : at + 2]
    return []


def _add(found: Writes, cwd: str, word: Word) -> None:
    if word.literal:
        found.paths.append((cwd, word.text))
    else:
        found.is_readable = False


def _without_wrappers(words: list[Word]) -> list[Word]:
    """Remove assignments and wrappers such as `sudo`, with their options and numbers."""
    at = 0
    while at < len(words):
        text = words[at].text
        is_assignment = "=" in text and text.partition("=")[0].isidentifier()
        is_option = at and (
            text.startswith("-") or text[:1].isdigit() or words[at - 1].text == "-u"
        )
        if not is_assignment and text not in _WRAPPERS and not is_option:
            break
        at += 1
    return words[at:]
