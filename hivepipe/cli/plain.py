"""Text as a terminal may show it: what steers one, or cannot be seen, is written out."""

from hivepipe.text.visible import is_harmless, printable


def printable_lines(text: str) -> list[str]:
    """Return the lines of a text, each as `printable` has it, with tabs as blanks."""
    return [printable(line.removesuffix("\r").expandtabs(4)) for line in text.split("\n")]


def printable_json(document: str) -> str:
    """Return JSON with what would steer a terminal as JSON writes it: the same when it is read."""
    lines = document.split("\n")
    return "\n".join("".join(_in_json(char) for char in line) for line in lines)


def _in_json(char: str) -> str:
    if is_harmless(char):
        return char
    if char in "\t\r":  # between the values: within one they are written out already
        return " "
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
