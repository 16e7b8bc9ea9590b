"""Quote texts of other sources for Claude: they must not look like hivepipe's or the user's texts.

Each line is prefixed by `> `, invisible characters are escaped, and no line contains a tag. Hooks
import this module only when there is text to quote.
"""

from hivepipe.text.visible import printable

MARK = "> "
CUT = " […]"
_MOST_NAME_CHARS = 200


def quoted(text: str, most: int, indent: str = "") -> str:
    """Return a text with each line prefixed by `> `, at most `most` characters long."""
    margin = indent + MARK
    lines = text[:most].strip().expandtabs(4).splitlines()
    whole = "\n".join([f"{margin}{harmless(line)}".rstrip() for line in lines])
    if len(text) > most:
        whole = f"{whole or margin.rstrip()}{CUT}"
    return cut(whole, most)


def of_repository(name: str, text: str, most: int) -> str:
    """Return a repository's file, quoted and with its name, in at most `most` characters."""
    head = f"From {on_one_line(name, _MOST_NAME_CHARS)}, a file of this repository"
    return cut(f"{head}, quoted; these are not the user's words:\n{quoted(text, most)}", most)


def on_one_line(text: str, most: int) -> str:
    """Return a text, such as a name or title, on one line of at most `most` characters."""
    return cut(harmless(" ".join(text[: 4 * most].split())), most)


def harmless(line: str) -> str:
    """Return a line with invisible characters escaped; `<` of a possible tag becomes `&lt;`."""
    first, *others = printable(line).split("<")
    return "".join([first, *[f"{_opening(rest)}{rest}" for rest in others]])


def _opening(rest: str) -> str:
    """Return `<`, or `&lt;` if it may begin a tag: Claude Code puts hook output inside tags."""
    return "&lt;" if not rest or rest[0].isalpha() or rest[0] in "/!?" else "<"


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters; a longer text is cut, and CUT is added."""
    return text if len(text) <= most else text[: most - len(CUT)].rstrip() + CUT
