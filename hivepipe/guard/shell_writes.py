"""The paths that a shell command writes, as far as its text shows them.

Words, quotes, redirections, here-documents, nested commands and known commands that write files are
supported; variables, functions and other programs are not. For other commands,
`Writes.is_readable` is False. Hooks import this module if a shared root is set.
"""

from hivepipe.guard.shell_words import Word, simple_commands

# Wrappers, with the letters of their options that take a value.
_WRAPPERS = {
    **dict.fromkeys(("if", "elif", "while", "until", "then", "else", "do", "!", "{"), ""),
    **dict.fromkeys(("command", "builtin", "nohup", "setsid", "busybox"), ""),
    **dict(sudo="CDgpRrTtUu", doas="Cu", env="Cu", exec="a", time="fo", timeout="ks"),
    **dict(nice="n", ionice="cnPpu", stdbuf="eio"),
}
_LONG_WITH_VALUE = (
    *("--user", "--group", "--prompt", "--host", "--role", "--type", "--other-user", "--chroot"),
    *("--close-from", "--command-timeout", "--chdir", "--unset", "--adjustment", "--class"),
    *("--classdata", "--input", "--output", "--error", "--signal", "--kill-after", "--format"),
)
# Options of `find` after which `rm -r {}` and `rm {}` delete all that the start points contain.
_FOR_FOLDERS = {"-depth", "-print", "-print0", "-mindepth", "-maxdepth"}
_FOR_FILES = {"-depth", "-print", "-print0", "-mindepth", "-type"}
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
_DEEPEST = 5  # levels of nested commands that are parsed

# Commands that write all of their arguments, or the last one.
_ALL = (
    *("touch", "mkdir", "rm", "rmdir", "unlink", "truncate", "shred", "tee", "chmod", "chown"),
    *("sed", "mkfifo"),
)
_LAST = ("cp", "mv", "ln", "install", "rsync", "scp")
_OF_ENTRIES = ("rm", "rmdir", "unlink")  # they change a link itself, not its target
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

    `trees` lists the paths that are deleted, moved or changed with all that they contain. In
    `paths`, a path with expansions is a pattern. After `cd $VAR` the folder is "".
    """

    __slots__ = ("is_readable", "paths", "trees")

    def __init__(self) -> None:
        # (working folder, path, whether a link at the path is written and not its target)
        self.paths: list[tuple[str, str, bool]] = []
        self.trees: list[tuple[str, Word, bool]] = []
        self.is_readable = True


def writes_of(command: str, cwd: str, depth: int = 0) -> Writes:
    found = Writes()
    folders = [cwd]  # of the open subshells
    for words, targets, level in simple_commands(command):
        del folders[level + 1 :]
        folders += folders[-1:] * (level + 1 - len(folders))
        for word in [*words, *targets]:
            for inner in word.inner:
                _add_command(found, folders[-1], inner, depth)
        for target in targets:
            _add(found, folders[-1], target)
        folders[-1] = _add_program(found, folders[-1], words, depth)
    return found


def _add_program(found: Writes, cwd: str, words: list[Word], depth: int) -> str:
    """Add the writes of a simple command; return the working folder after the command."""
    words = _without_wrappers(words)
    if not words:
        return cwd
    name, arguments = words[0], words[1:]
    if not name.literal:
        found.is_readable = False
        return cwd
    program = name.text.rsplit("/", 1)[-1]
    if program in ("cd", "pushd"):
        if arguments and arguments[-1].literal:
            path = arguments[-1].text
            return path if path.startswith(("/", "~")) else cwd and f"{cwd}/{path}"
        found.is_readable = False
        return ""
    if (program in _SHELLS or program == "eval") and all(word.literal for word in arguments):
        _add_command(found, cwd, _command_given(program, arguments), depth)
    elif program != "rsync" or not _is_dry_run(arguments):
        _add_arguments(found, cwd, program, arguments, depth)
        is_entry = program in (*_OF_ENTRIES, "mv")
        for tree in _trees(program, arguments):
            if _is_known(cwd, tree):
                found.trees.append((cwd, tree, is_entry))
    return cwd


def _add_command(found: Writes, cwd: str, command: str, depth: int) -> None:
    """Add the writes of a nested command. "" stands for an unknown command."""
    if not command or depth == _DEEPEST:
        found.is_readable = False
        return
    _merge(found, writes_of(command, cwd, depth + 1))


def _merge(found: Writes, inner: Writes) -> None:
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
        files = []
        _add_find(found, cwd, arguments, depth)
    elif program in _LAST and not (program == "install" and "-d" in options):
        sources, files = _sources_and_target(program, arguments)
        for word in sources if program == "mv" else ():
            _add(found, cwd, word, is_entry=True)
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
        _add(found, cwd, word, program in _OF_ENTRIES)


def _trees(program: str, arguments: list[Word]) -> list[Word]:
    """Return the paths that `rm -r`, `mv`, `chmod -R`, `chown -R`, `rsync --delete` change."""
    files = [word for word in arguments if not word.text.startswith("-")]
    options = [word.text for word in arguments if word.text.startswith("-")]
    sources, target = _sources_and_target(program, arguments)
    if program == "mv":
        return sources
    if program == "rsync" and any(text.startswith("--del") for text in options):
        # `a/` and `.` replace the contents of the target, `a` those of its subfolder `a`.
        return [
            Word(f"{into.text}/{source.text.rpartition('/')[2]}", into.literal)
            for into in target
            for source in sources
            if source.literal
        ]
    if program in _RECURSIVE and any(
        text == "--recursive" or (text[1:2] != "-" and set(text) & set(_RECURSIVE[program]))
        for text in options
    ):
        return files
    return []


def _sources_and_target(program: str, arguments: list[Word]) -> tuple[list[Word], list[Word]]:
    """Return the arguments of `cp` and similar programs; a target on another host is left out."""
    files = [word for word in arguments if not word.text.startswith("-")]
    if program in ("rsync", "scp"):  # -t has another meaning in these programs
        is_remote = any(":" in word.text.partition("/")[0] for word in files[-1:])
        return files[:-1], [] if is_remote else files[-1:]
    target = _value_of("t", "--target-directory", arguments) or files[-1:]
    return [word for word in files if word not in target], target


def _is_dry_run(arguments: list[Word]) -> bool:
    """Tell whether `rsync` gets `--dry-run` or `-n`, but not the n of `-essh -n` or `-f '- n'`."""
    texts = [word.text for word in arguments]
    return "--dry-run" in texts or any(
        text[:1] == "-" != text[1:2] and "n" in text and not set(text) & set("eTfBM ")
        for text in texts
    )


def _of_w_command(script: Word) -> list[Word]:
    """Return the absolute path to which the last `w` command of a `sed` script writes, or []."""
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


def _add_find(found: Writes, cwd: str, arguments: list[Word], depth: int) -> None:
    """Add what `find` writes by `-delete`, or by the commands after -exec.

    In these commands `{}` stands for the start points, with all that they contain unless another
    option selects files.
    """
    given = [word for word in arguments if word.text not in ("-H", "-L", "-P")]
    texts = [word.text for word in given]
    at = next((n for n, text in enumerate(texts) if text.startswith(("-", "(", "!"))), 0)
    starts = given[:at] or [Word(".", literal=True)]
    if {"-H", "-L"} & {word.text for word in arguments}:
        starts = [Word(f"{word.text}/", word.literal) for word in starts]  # a link is followed
    names = {word.text for word in starts}
    options: set[str] = set()
    while at < len(texts):
        option = texts[at]
        at += 1
        words: list[Word] = []
        if option == "-delete" and option not in options:
            words = [Word("rm", literal=True), *starts]
        elif option in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((n for n in range(at, len(texts)) if texts[n] in (";", "+")), len(texts))
            words = [w for word in given[at:end] for w in (starts if "{}" in word.text else [word])]
            at = end + 1
        inner = Writes()
        inner.is_readable = depth < _DEEPEST and not option.startswith(("-fprint", "-fls"))
        if inner.is_readable:
            _add_program(inner, cwd, words, depth + 1)
        if options - _FOR_FOLDERS:
            inner.trees = [tree for tree in inner.trees if tree[1].text not in names]
        if not options - _FOR_FILES:
            below = [path for path in inner.paths if path[1] in names]
            inner.trees += [
                (cwd, Word(path, literal=not set(path) & set("*?[")), entry)
                for _, path, entry in below
            ]
        _merge(found, inner)
        if option.startswith(("-", "(", "!")) and not option.startswith(("-exec", "-ok")):
            options.add(option)


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


def _add(found: Writes, cwd: str, word: Word, is_entry: bool = False) -> None:
    found.is_readable = found.is_readable and word.literal
    if _is_known(cwd, word):
        found.paths.append((cwd, word.text, is_entry))


def _is_known(cwd: str, word: Word) -> bool:
    """Tell whether a path or pattern has no variable and is not below an unknown folder."""
    is_plain = word.literal or not set(word.text) & set("$`")
    return is_plain and bool(cwd or word.text.startswith(("/", "~")))


def _without_wrappers(words: list[Word]) -> list[Word]:
    """Return a command's words without assignments, and without wrappers such as `sudo -n`."""
    at = 0
    with_value = ""
    while at < len(words):
        text = words[at].text
        program = text.rsplit("/", 1)[-1]
        if program in _WRAPPERS:
            with_value = _WRAPPERS[program]
        elif at and text.startswith("-"):
            letters = text[1:] if text[1:2] != "-" else ""
            value_at = next((n for n, letter in enumerate(letters) if letter in with_value), -1)
            at += text in _LONG_WITH_VALUE or 0 <= value_at == len(letters) - 1
        elif not (at and text[:1].isdigit()) and not _is_assignment(text):
            break
        at += 1
    return words[at:]


def _is_assignment(text: str) -> bool:
    name, equals, _ = text.partition("=")
    return bool(equals) and name.isidentifier()
