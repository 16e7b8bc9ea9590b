"""Text of others as Claude is told it: quoted, so that none of it is taken for ours or the user's.

Each line stands behind `> `, what cannot be seen is written out, and no line holds a tag.
On the hook path, when there is something to say.
"""

from hivepipe.visible import printable

MARK = "> "
CUT = " […]"
_MOST_NAME_CHARS = 200


def quoted(text: str, most: int, indent: str = "") -> str:
    """Return a text behind `> `, line by line, in at most so many characters."""
    margin = indent + MARK
    lines = text[:most].strip().expandtabs(4).splitlines()
    whole = "\n".join([f"{margin}{harmless(line)}".rstrip() for line in lines])
    if len(text) > most:
        whole = f"{whole or margin.rstrip()}{CUT}"
    return cut(whole, most)


def of_repository(name: str, text: str, most: int) -> str:
    """Return a file of a repository, quoted, with its name, in at most so many characters."""
    head = f"From {on_one_line(name, _MOST_NAME_CHARS)}, a file of this repository"
    return cut(f"{head}, quoted; these are not the user's words:\n{quoted(text, most)}", most)


def on_one_line(text: str, most: int) -> str:
    """Return a text in one line of at most so many characters: a name, a title."""
    return cut(harmless(" ".join(text[: 4 * most].split())), most)


def harmless(line: str) -> str:
    """Return a line that can be seen whole; `<` of what could be a tag is `&lt;`."""
    first, *others = printable(line).split("<")
    return "".join([first, *[f"{_opening(rest)}{rest}" for rest in others]])


def _opening(rest: str) -> str:
    """Claude Code puts what hooks say between tags: a text must not end them."""
    return "&lt;" if not rest or rest[0].isalpha() or rest[0] in "/!?" else "<"


def cut(text: str, most: int) -> str:
    """Return the text, or its beginning and a mark."""
    return text if len(text) <= most else text[: most - len(CUT)].rstrip() + CUT
