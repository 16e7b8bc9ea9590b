"""Sizes with units."""


def size(count: float) -> str:
    """Return a number of bytes with its unit."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
