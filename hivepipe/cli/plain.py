"""Text as a terminal may show it."""


def printable(value: object) -> str:
    """Return text that cannot steer a terminal."""
    text = "" if value is None else str(value)
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
