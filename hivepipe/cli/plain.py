"""Text as a terminal may show it: what steers one, or cannot be seen, is written out."""

import re

# What prints as nothing though Python calls it printable: it hides a word, or tells two ids apart
# that look alike. (Unicode's default ignorable code points; the others are no printable ones.)
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0"
_UNSEEN += "\U000e0100-\U000e01ef"
_IS_UNSEEN = re.compile(f"[{_UNSEEN}]")


def printable(value: object) -> str:
    r"""Return a text on one line that cannot steer a terminal: an escape is `\x1b`, a line `\n`."""
    text = "" if value is None else str(value)
    if text.isascii():
        return text if text.isprintable() else _written_out(text)
    return text if text.isprintable() and not _IS_UNSEEN.search(text) else _written_out(text)


def printable_lines(text: str) -> list[str]:
    """Return the lines of a text, each as `printable` has it, with tabs as blanks."""
    return [printable(line.removesuffix("\r").expandtabs(4)) for line in text.split("\n")]


def printable_json(document: str) -> str:
    """Return JSON with what would steer a terminal as JSON writes it: the same when it is read."""
    lines = document.split("\n")
    return "\n".join("".join(_in_json(char) for char in line) for line in lines)


def _written_out(text: str) -> str:
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if _is_harmless(char):
        return char
    if char.isspace() and ord(char) >= 0xA0 and char not in "\u2028\u2029":
        return " "  # of another width: thin, ideographic
    return char.encode("unicode_escape").decode()


def _in_json(char: str) -> str:
    if _is_harmless(char):
        return char
    if char in "\t\r":  # between the values: within one they are written out already
        return " "
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _is_harmless(char: str) -> bool:
    return char.isprintable() and not _IS_UNSEEN.match(char)
