"""Read the wrappers of shell commands, such as `sudo`, and what `xargs` reads from a pipeline.

Hooks import this module if a shared root is set.
"""

from hivepipe.guard.shell_options import WITH_OPERAND, WRAPPERS, Options, parsed
from hivepipe.guard.shell_text import Word, words_in
from hivepipe.home import absolute

INPUT = "\1"  # stands for the words that `xargs` or `parallel` read
UNKNOWN = Word("$", literal=False)
_ORDERING = ("sort", "uniq", "tac", "shuf", "tr")  # their output has the words of their input
_SELECTING = ("grep", "egrep", "fgrep", "head", "tail")  # has some of these words
_LONGEST_FOLDER = 1000
_LONGEST_INPUT = 10_000  # characters
_MOST_WRAPPERS = 20


def without_wrappers(
    words: list[Word], cwd: str, source: list[Word]
) -> tuple[list[Word], str, list[Word]]:
    """Return words without assignments and wrappers such as `sudo -n`, the folder, the source.

    In the words of a command that `xargs` runs, INPUT stands for what it reads.
    """
    for _ in range(_MOST_WRAPPERS):
        at = next((n for n, word in enumerate(words) if not _is_assignment(word)), len(words))
        words = words[at:] if at else words
        program = words[0].text.rsplit("/", 1)[-1] if words else ""
        if program not in WRAPPERS:
            break
        options, words = parsed(program, words[1:])
        if program == "command" and {"-v", "-V"} & options.keys():
            return [], cwd, source
        for folder in options.get("-D" if program == "sudo" else "-C", ()):
            cwd = joined_folder(cwd, folder) if program in ("sudo", "env") else cwd
        if program == "env":
            given = options.get("-S", ())
            words = [*(word for text in given for word in words_in(text.text, {})), *words]
        words = words[program in WITH_OPERAND :]
        if program == "flock" and words and words[0].text == "-c":
            words = [Word("sh", literal=True), *words]
        if program in ("xargs", "parallel"):
            words, source = _with_mark(program, options, words, source)
    return words, cwd, source


def _with_mark(
    program: str, options: Options, words: list[Word], source: list[Word]
) -> tuple[list[Word], list[Word]]:
    """Return the command that `xargs` or `parallel` runs, with INPUT, and the source of this."""
    texts = [word.text for word in words]
    if program == "parallel" and ":::" in texts:
        at = texts.index(":::")
        words, source = words[:at], [Word("echo", literal=True), *words[at + 1 :]]
    elif "-a" in options:
        source = []
    name = options.get("-I", options.get("-i"))
    mark = name[0].text if name else "{}"
    if name is not None or (program == "parallel" and any("{}" in text for text in texts)):
        words = [Word(word.text.replace(mark, INPUT), word.literal) for word in words]
    else:
        words = [*words, Word(INPUT, literal=True)]
    if program == "parallel" and any(" " in word.text for word in words):
        text = " ".join(word.text for word in words)
        command = Word(text, all(word.literal for word in words))
        words = [Word("sh", literal=True), Word("-c", literal=True), command]
    return words, source


def _is_assignment(word: Word) -> bool:
    name, equals, _ = word.text.partition("=")
    return bool(equals) and name.removesuffix("+").isidentifier()


def joined_folder(cwd: str, word: Word, is_physical: bool = False) -> str:
    """Return the folder after `cd`, or "" if it is unknown. As in a shell, `link/..` is `.`.

    After `cd -P`, the folder ends with `/.`, and `..` is that of the target of a link.
    """
    if not word.literal or not (cwd or word.text.startswith(("/", "~"))):
        return ""
    is_absolute = word.text.startswith(("/", "~"))
    names = [] if is_absolute else absolute(cwd).split("/")[1:]
    for name in (absolute(word.text) if is_absolute else word.text).split("/"):
        if name == ".." and not is_physical and names[-1:] not in (["."], [".."]):
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    folder = "/" + "/".join([*names, "."] if is_physical else names)
    return folder if len(folder) < _LONGEST_FOLDER else ""


def with_input(word: Word, given: Word) -> Word:
    if word.text.count(INPUT) * len(given.text) > _LONGEST_INPUT:
        return UNKNOWN
    is_below = given is UNKNOWN and not word.text.startswith(INPUT)  # as `/a/{}`
    return Word(
        word.text.replace(INPUT, "*" if is_below else given.text), word.literal and given.literal
    )


def words_of(source: list[Word]) -> list[Word]:
    """Return the words that `echo`, `printf` or `ls` print, or [] for other commands."""
    name = source[0].text if source else ""
    given = [word for word in source[1:] if word.text[:1] != "-"]
    if name == "ls":
        if any(word.text[:1] == "-" and "d" in word.text for word in source[1:]):
            return given
        return [] if given else [Word("*", literal=False)]
    if name == "printf":
        text = given[0].text.replace("\\n", " ").replace("\\0", " ") if given else ""
        given = given[1:] or [Word(text, all(word.literal for word in given))]
    elif name != "echo":
        return []
    return [Word(text, word.literal) for word in given for text in word.text.split()]


def passed_on(words: list[Word], source: list[Word]) -> list[Word]:
    """Return the command whose words a command of a pipeline prints."""
    words, *_ = without_wrappers(words, "", [])
    name = words[0].text if words else ""
    is_find = bool(source) and source[0].text == "find"
    if name in _ORDERING or (name in _SELECTING and is_find):
        return [*source, Word("-name", literal=True)] if is_find else source
    return words
