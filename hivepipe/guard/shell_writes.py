"""The paths that a shell command writes, as far as its text shows them.

Words, quotes, redirections, here-documents, nested commands, arrays and variables that are set
once, `for` loops, the input of `xargs`, and known commands that write files are supported;
arguments of functions and other programs are not. For other commands, `Writes.is_readable` is
False. Hooks import this module if a shared root is set.
"""

from hivepipe.guard.shell_options import Options, parsed
from hivepipe.guard.shell_text import Values, Word
from hivepipe.guard.shell_variables import (
    Limits,
    Variables,
    environment,
    fitting,
    initial,
    positional,
)
from hivepipe.guard.shell_words import SHELLS, simple_commands
from hivepipe.guard.shell_wrappers import (
    INPUT,
    UNKNOWN,
    joined_folder,
    passed_on,
    with_input,
    without_wrappers,
    words_of,
)
from hivepipe.home import absolute

# Commands whose first argument names no file, with the options that replace this argument.
_NO_FILE_FIRST = {
    "chmod": {"-r", "-w", "-x", "-X", "-s", "-t", "--reference"},
    "chown": {"--reference"},
    "chgrp": {"--reference"},
    "sed": {"-e", "-f"},
    "perl": {"-e", "-E"},
}
_EXCLUDING = {"--exclude", "--exclude-from", "-f"}  # options of `rsync`
# Options of `find` that exclude files by their name or place, from all commands or from those that
# change no folders.
_BY_NAME = {
    *("-name", "-iname", "-lname", "-path", "-ipath", "-wholename", "-iwholename", "-regex"),
    *("-iregex", "-samefile", "-inum", "-xdev", "-mount"),
}
_IN_SAME_SHELL = ("eval", "trap")
_COMMAND_GIVEN = (*SHELLS, *_IN_SAME_SHELL, "script", "su", "runuser")
_MOST_INPUT = 50
_DEEPEST = 5  # levels of nested commands that are parsed
_MOST_PUSHED = 20
_MOST_LINKS = 1000
_LONGEST_PATH = 10_000  # a pattern may be longer than the path
_LEAST_READ = 20  # characters that the time for the shortest nested command is worth

# If the path is a link: its target is written, the link itself, or only the target if it is a
# folder.
TARGET, LINK, FOLDER_OR_LINK = range(3)

# Commands that write all of their arguments, or the last one.
_ALL = (
    *("touch", "mkdir", "rm", "rmdir", "unlink", "truncate", "shred", "tee", "chmod", "chown"),
    *("chgrp", "mkfifo"),
)
_LAST = ("cp", "mv", "ln", "install", "rsync", "scp")
_OF_LINKS = ("rm", "rmdir", "unlink", "sed", "perl", "mv", "rsync")
_RECURSIVE = {"rm": {"-r", "-R"}, "chmod": {"-R"}, "chown": {"-R"}, "chgrp": {"-R"}}
_OUTPUT = {"curl": "-o", "sort": "-o", "wget": "-O"}  # the option that names the output file
_READING = (
    *("cat", "ls", "cd", "pwd", "head", "tail", "less", "more", "wc", "grep", "egrep", "rg"),
    *("find", "stat", "file", "du", "df", "tree", "diff", "cmp", "sort", "uniq", "cut", "jq"),
    *("echo", "printf", "test", "[", "[[", "md5sum", "sha256sum", "realpath", "readlink"),
    *("basename", "dirname", "awk", "xxd", "od", "strings", "true", "false", "export", "set"),
    *("tr", "nl", "tac", "column", "paste", "comm", "join", "seq", "hexdump", "cksum", "sha1sum"),
    *("date", "sleep", "which", "type", "zcat", "zgrep", "read", "for", "case", "select", ":"),
    *("break", "continue", "return", "exit", "wait", "unset", "local", "((", "function"),
)


Folders = tuple[str, ...]  # the working folder, the one before, and the stack of `pushd`


class Writes:
    """The paths that a command writes; `is_readable` is False if it can write other paths, too.

    `trees` lists the paths that are deleted, moved or changed with all that they contain. In
    `paths`, a path with expansions is a pattern. An unknown working folder is "".

    `links` lists the symbolic links that the command makes: working folder, target, and path.
    """

    __slots__ = ("is_readable", "limits", "links", "paths", "trees")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.links: list[tuple[str, str, str]] = []
        # (working folder, path, what is written if the path is a link)
        self.paths: list[tuple[str, str, int]] = []
        self.trees: list[tuple[str, Word, int]] = []
        self.is_readable = True


def writes_of(command: str, cwd: str) -> Writes:
    found = Writes(Limits())
    _add_command(found, cwd, command, 0, initial(absolute("~")))
    found.is_readable = found.is_readable and not found.limits.is_reached
    found.paths = list(dict.fromkeys(found.paths))  # loops give some twice
    return found


def _add_program(
    found: Writes,
    folders: Folders,
    words: list[Word],
    depth: int,
    values: Values,
    source: list[Word],
) -> Folders:
    """Add the writes of a simple command; return the folders after the command.

    `source` is the command whose output it reads, or [].
    """
    given = words
    words, cwd, source = without_wrappers(words, folders[0], source)
    if words is not given and any(INPUT in word.text for word in words):
        _add_with_input(found, cwd, words, depth, values, source)
        return folders
    if not words:
        return folders
    name, arguments = words[0], words[1:]
    found.is_readable = found.is_readable and name.literal
    if not name.literal:
        return folders
    program = name.text.rsplit("/", 1)[-1]
    if program in ("cd", "pushd", "popd"):
        folders = _moved(folders, program, arguments)
        found.is_readable = found.is_readable and bool(folders[0])
    elif program in _COMMAND_GIVEN and all(word.literal for word in arguments):
        command, more = _command_given(program, arguments, source)
        if program not in _IN_SAME_SHELL:
            before = given[: len(given) - len(words)]
            values = {**environment(values, before), **positional(more)}
        _add_command(found, cwd, command, depth + 1, fitting(values, command))
    elif program == "find":
        _add_find(found, cwd, arguments, depth, values)
    else:
        _add_arguments(found, cwd, program, arguments)
    return folders


def _add_with_input(
    found: Writes, cwd: str, words: list[Word], depth: int, values: Values, source: list[Word]
) -> None:
    """Add the writes of a command that `xargs` or `parallel` runs with words of its input."""
    name = source[0].text if source else ""
    if name == "find":
        words = [Word(word.text.replace(INPUT, "{}"), word.literal) for word in words]
        end = [Word("-exec", literal=True), *words, Word(";", literal=True)]
        _add_find(found, cwd, [*source[1:], *end], depth, values)
        return
    given = words_of(source)
    found.is_readable = found.is_readable and 0 < len(given) <= _MOST_INPUT
    if any(word.text == INPUT for word in words):  # it takes all words of its input at once
        at = next(n for n, word in enumerate(words) if word.text == INPUT)
        given = given or [UNKNOWN]
        words = [*words[:at], *given[:_MOST_INPUT], *words[at + 1 :]]
        given = given[:1]
    for one in given[:_MOST_INPUT] or [UNKNOWN]:
        found.limits.nested -= _LEAST_READ + sum(len(word.text) for word in words)
        if found.limits.nested < 0:
            found.is_readable = False
            return
        now = [with_input(word, one) if INPUT in word.text else word for word in words]
        _add_program(found, (cwd, ""), now, depth + 1, values, [])


def _moved(folders: Folders, program: str, arguments: list[Word]) -> Folders:
    """Return the folders after `cd`, `pushd` or `popd`."""
    cwd, old, *stack = folders
    named = [word for word in arguments if word.text[:1] != "-" or word.text == "-"]
    if program == "popd" or (program == "pushd" and not named):
        new, *stack = stack or [cwd]
    elif not named:
        new = absolute("~")
    elif named[0].text == "-":
        new = old
    else:
        new = joined_folder(cwd, named[0], any(word.text == "-P" for word in arguments))
    if program == "pushd":
        stack = [cwd, *stack[:_MOST_PUSHED]]
    return (new, cwd, *stack)


def _add_command(found: Writes, cwd: str, command: str, depth: int, values: Values) -> None:
    """Add the writes of a command line with known `values` of variables.

    "" stands for an unknown command.
    """
    found.limits.nested -= len(command) + _LEAST_READ if depth else 0
    if not command or depth > _DEEPEST or found.limits.nested < 0:
        found.is_readable = False
        return
    folders: Folders = (cwd, "")
    before: list[Folders] = []
    source: list[Word] = []
    variables = Variables(command, values, found.limits)
    variables.move(*folders[:2])
    for now in simple_commands(command, variables):
        before.append(folders)
        for inner in now.inner:
            _add_command(found, folders[0], inner, depth + 1, variables.values)
        for target in now.targets:
            _add(found, folders[0], target)
        if now.stdin is not None:
            source = [Word("echo", literal=True), Word(now.stdin, literal=True)]
        if now.words:
            folders = _add_program(found, folders, now.words, depth, variables.values, source)
        source = passed_on(now.words, source) if now.is_piped else []
        for number in now.back:
            folders = before[number]
        if folders is not before[-1]:
            variables.move(*folders[:2])


def _command_given(
    program: str, arguments: list[Word], source: list[Word]
) -> tuple[str, list[Word]]:
    """Return the command of `eval`, `trap` or `sh -c`, or "" for a script; and its arguments."""
    texts = [word.text for word in arguments]
    if program == "eval":
        return " ".join(texts[texts[:1] == ["--"] :]), []
    if program == "trap":
        return texts[0] if texts[1:] and texts[0] not in ("", "-") else ":", []
    if program not in SHELLS:
        return next((word.text for word in parsed(program, arguments)[0].get("-c", ())), ""), []
    rest = iter(arguments)
    for text in (word.text for word in rest):
        if not text.startswith(("-", "+")):
            return "", []
        if text.endswith("c") and not text.startswith("--"):
            command = next(rest, Word("", literal=True)).text
            return command, list(rest)[1:]
        if text.endswith("o"):  # as in `-euo pipefail`
            next(rest, "")
    return " ".join(word.text for word in source[1:] if source[0].text == "echo"), []


def _add_arguments(found: Writes, cwd: str, program: str, arguments: list[Word]) -> None:
    options, files = parsed(program, arguments)
    files = [word for word in files if word.text]  # not the '' of `sed -i '' s/a/b/ FILE`
    names = options.keys()
    scripts = options.get("-e", [])
    if program in _NO_FILE_FIRST and not _NO_FILE_FIRST[program] & names:
        scripts, files = files[:1], files[1:]
    trees = files if _RECURSIVE.get(program, set()) & names else []
    if program == "dd":
        files = [Word(w.text[3:], w.literal) for w in files if w.text.startswith("of=")]
    elif program in ("sed", "perl") and "-i" in names:
        pass
    elif program == "sed":
        files = [word for text in scripts for word in _of_w_command(text)]
    elif program in _LAST and not (program == "install" and "-d" in names):
        files, trees = _add_copies(found, cwd, program, options, files)
    elif program in _OUTPUT:
        found.is_readable = found.is_readable and program in _READING
        files = [word for word in options.get(_OUTPUT[program], ()) if word.text != "-"]
    elif program not in (*_ALL, "install"):
        writes = (
            (program == "awk" and any(">" in word.text for word in files[:1]))
            # These write their second file; a number is the value of an option.
            or (program in ("uniq", "xxd") and sum(not w.text.isdigit() for w in files) > 1)
            or (program in ("less", "tree") and "-o" in names)
        )
        found.is_readable = found.is_readable and program in _READING and not writes
        files = []
    link = LINK if program in _OF_LINKS else TARGET
    for word in files:
        _add(found, cwd, word, link)
    found.trees += [(cwd, tree, link) for tree in trees if _is_known(cwd, tree)]


def _add_copies(
    found: Writes, cwd: str, program: str, options: Options, files: list[Word]
) -> tuple[list[Word], list[Word]]:
    """Add the targets of `cp` etc. to `found`; return (paths, trees) that change besides them.

    These are sources that are moved, and folders in which `rsync` deletes files.
    """
    names = options.keys()
    sources, targets = _sources_and_targets(program, options, files)
    if program == "rsync" and "-n" in names:
        return [], []
    for target in targets:
        _add(found, cwd, target, _link_of_target(program, options))
    if program == "ln" and "-s" in names:
        known = [target.text for target in targets if _is_known(cwd, target)]
        made = [(cwd, s.text, path) for s in sources if s.literal for path in known[-1:]]
        found.links += made[: _MOST_LINKS - len(found.links)]
    if program == "mv" or "--remove-source-files" in names:
        return sources, sources
    if program != "rsync" or not any(name.startswith("--del") for name in names):
        return [], []
    if _EXCLUDING & names:
        found.is_readable = False
        return [], []
    # `a/` and `.` replace the contents of the target, `a` those of its subfolder `a`.
    names_in = [source.text.rpartition("/")[2] for source in sources if source.literal]
    return [], [Word(f"{to.text}/{name}", to.literal) for to in targets for name in names_in]


def _sources_and_targets(
    program: str, options: Options, files: list[Word]
) -> tuple[list[Word], list[Word]]:
    """Return (sources, targets) of `cp` etc., without a target on another host."""
    if program in ("rsync", "scp"):  # -t has another meaning in these programs
        is_remote = any(":" in word.text.partition("/")[0] for word in files[-1:])
        return files[:-1], [] if is_remote else files[-1:]
    folders = options.get("-t", [])
    if program == "ln" and len(files) == 1 and not folders:
        folders = [Word(".", literal=True)]
    return (files, folders) if folders else (files[:-1], files[-1:])


def _link_of_target(program: str, options: Options) -> int:
    """Return what `cp` and similar programs write if their target is a link."""
    if program in ("mv", "ln") and {"-T", "-n" if program == "ln" else ""} & options.keys():
        return LINK
    if program in ("cp", "scp") and "--remove-destination" not in options:
        return TARGET
    return FOLDER_OR_LINK


def _of_w_command(script: Word) -> list[Word]:
    """Return [the absolute path] that the last `w` command of a `sed` script writes, or []."""
    before, command, path = script.text.rpartition("w ")
    path = path.strip(" }")
    is_text = before.rstrip("gpeIMm0123456789")[-1:].isalpha()  # `s/now /x/`, but not `s/a/b/gw f`
    return [Word(path, script.literal)] if command and not is_text and path.startswith("/") else []


def _add_find(found: Writes, cwd: str, arguments: list[Word], depth: int, values: Values) -> None:
    """Add what `find` writes by `-delete`, or by the commands after -exec.

    In these commands `{}` stands for the start points, with all that they contain unless another
    option selects files.
    """
    given = [word for word in arguments if word.text not in ("-H", "-L", "-P")]
    texts = [word.text for word in given]
    at = next((n for n, text in enumerate(texts) if text.startswith(("-", "(", "!"))), len(texts))
    starts = given[:at] or [Word(".", literal=True)]
    mark = "\0" * (depth + 1)  # stands for `{}` of this `find`
    options: set[str] = set()
    paths: set[int] = set()  # what is written if a start is a link: TARGET, ...
    trees: set[int] = set()
    while at < len(texts):
        option = texts[at]
        at += 1
        words: list[Word] = []
        if option == "-delete":
            words = [Word("rm", literal=True), Word(mark, literal=True)]
        elif option in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((n for n in range(at, len(texts)) if texts[n] in (";", "+")), len(texts))
            words = [Word(w.text.replace("{}", mark), w.literal) for w in given[at:end]]
            at = end + 1
        elif option.startswith(("-", "(", "!")):
            options.add(option)
        inner = Writes(found.limits)
        inner.is_readable = depth < _DEEPEST and not option.startswith(("-fprint", "-fls"))
        if inner.is_readable:
            _add_program(inner, (cwd, ""), words, depth + 1, values, [])
        found.is_readable = found.is_readable and inner.is_readable
        found.paths += [path for path in inner.paths if mark not in path[1]]
        found.trees += [tree for tree in inner.trees if mark not in tree[1].text]
        written = {link for _, path, link in inner.paths if mark in path}
        paths |= written
        if not options & _BY_NAME:
            trees |= {link for _, tree, link in inner.trees if mark in tree.text}
        if not options & {*_BY_NAME, "-maxdepth"}:
            trees |= written
    is_followed = bool({"-H", "-L"} & {word.text for word in arguments})  # a start that is a link
    for start in starts:
        word = Word(f"{start.text}/", start.literal) if is_followed else start
        for link in paths:
            _add(found, cwd, word, link)
        found.trees += [(cwd, word, link) for link in trees if _is_known(cwd, word)]


def _add(found: Writes, cwd: str, word: Word, link: int = TARGET) -> None:
    is_known = _is_known(cwd, word)
    found.is_readable = found.is_readable and word.literal and is_known
    if is_known:
        found.paths.append((cwd, word.text, link))


def _is_known(cwd: str, word: Word) -> bool:
    """Tell whether a path or pattern has no variable, a known folder, and a length that can be."""
    text = word.text
    is_known = (word.literal or "$" not in text) and len(text) < _LONGEST_PATH
    return is_known and bool(cwd or text.startswith(("/", "~")))
