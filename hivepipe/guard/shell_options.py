"""Parse the options of commands that write files, and of wrappers such as `sudo`.

Hooks import this module if a shared root is set.
"""

from hivepipe.guard.shell_text import Word

# Wrappers, with the letters of their options that take a value.
WRAPPERS = {
    **dict.fromkeys(("command", "builtin", "nohup", "setsid", "busybox", "taskset"), ""),
    **dict(sudo="CDgpRrTtUu", doas="Cu", env="CuS", exec="a", time="fo", timeout="ks"),
    **dict(nice="n", ionice="cnPpu", stdbuf="eio", xargs="adEILnPs", flock="Ew", chrt="DPT"),
    "parallel": "aCIJjLNnSs",
}
WITH_OPERAND = ("timeout", "flock", "chrt", "taskset")  # one argument precedes the command
# Commands, with the letters of options that take a value; after ":" only in the same word.
_WITH_VALUE = {
    **dict(touch="drt", mkdir="m", mkfifo="m", truncate="rs", shred="ns", sed="efl:i"),
    **dict(cp="St", mv="St", ln="St", install="gmoSt", rsync="efBMT", scp="cDFiJloPSX"),
    **dict(perl="eEFIMm:i", sort="kotST", wget="aABDeGiIloOPQRtTUwX"),
    **dict(script="BcEIOoTm", su="cgGsw", runuser="cgGsuw", grep="ABCDdefm"),
    "curl": "AbcCdDeEFhHKmoPQrtTuUwxXyYz",
}
# The short names of long options that matter.
_SHORT = dict(
    text.split()
    for text in (
        *("--expression -e", "--file -f", "--in-place -i", "--dry-run -n", "--output -o"),
        *("--output-document -O", "--target-directory -t", "--no-target-directory -T"),
        *("--recursive -R", "--filter -f", "--chdir -C", "--split-string -S", "--command -c"),
        *("--symbolic -s", "--replace -I", "--arg-file -a"),
    )
)
_LONG_WITH_VALUE = {
    *("--user", "--group", "--prompt", "--host", "--role", "--type", "--other-user", "--chroot"),
    *("--close-from", "--command-timeout", "--chdir", "--unset", "--adjustment", "--class"),
    *("--classdata", "--input", "--output", "--error", "--signal", "--kill-after", "--format"),
    *("--target-directory", "--suffix", "--mode", "--owner", "--size", "--date", "--reference"),
    *("--expression", "--file", "--output-document", "--exclude", "--include", "--filter", "--rsh"),
    *(
        "--split-string",
        "--command",
        "--arg-file",
        "--exclude-from",
        "--include-from",
        "--files-from",
        "--log-file",
        "--iterations",
    ),
}
_NO_WORD = Word("", literal=True)

Options = dict[str, list[Word]]  # option -> its values


def parsed(program: str, arguments: list[Word]) -> tuple[Options, list[Word]]:
    """Return options and other arguments; a wrapper's options end at its first other argument."""
    letters = WRAPPERS.get(program, _WITH_VALUE.get(program, ""))
    with_value, _, in_same_word = letters.partition(":")
    options: Options = {}
    others: list[Word] = []
    rest = iter(arguments)
    for word in rest:
        text = word.text
        if text == "--":
            others += rest
        elif text[:1] != "-" or text == "-":
            others += [word, *rest] if program in WRAPPERS else [word]
        elif text[1] == "-":
            name, equals, value = text.partition("=")
            values = options.setdefault(_SHORT.get(name, name), [])
            if equals:
                values.append(Word(value, word.literal))
            elif name in _LONG_WITH_VALUE:
                values.append(next(rest, _NO_WORD))
        else:
            for at, letter in enumerate(text[1:], start=2):
                values = options.setdefault(f"-{letter}", [])
                if letter in with_value:
                    given = Word(text[at:], word.literal)
                    values.append(given if given.text else next(rest, _NO_WORD))
                if letter in with_value or letter in in_same_word:
                    break
    return options, others
