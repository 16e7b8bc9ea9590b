"""Text that is safe to print: control and invisible characters are escaped."""

from hivepipe.text.visible import printable


def printable_lines(text: str) -> list[str]:
    """Return the lines of a text, each escaped by `printable`, with tabs as spaces."""
    return [printable(line.removesuffix("\r").expandtabs(4)) for line in text.split("\n")]
