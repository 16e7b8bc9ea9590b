"""Text that is safe to print: control and invisible characters are escaped."""

from hivepipe.text.visible import is_harmless, printable


def printable_lines(text: str) -> list[str]:
    """Return the lines of a text, each escaped by `printable`, with tabs as spaces."""
    return [printable(line.removesuffix("\r").expandtabs(4)) for line in text.split("\n")]


def printable_json(document: str) -> str:
    """Return JSON with control characters as JSON escapes; it parses to the same value."""
    lines = document.split("\n")
    return "\n".join("".join(_in_json(char) for char in line) for line in lines)


def _in_json(char: str) -> str:
    if is_harmless(char):
        return char
    if char in "\t\r":  # between values: within a value they are escaped already
        return " "
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
