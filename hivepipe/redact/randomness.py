"""Distinguish a random value from a name, a word or a label."""


def looks_random(text: bytes) -> bool:
    """Tell whether a text changes between upper case, lower case and digits more than names do.

    A change from upper to lower case is not counted, because words begin with a capital.
    """
    kinds = text.translate(_KINDS)
    changes = sum(map(kinds.count, _CHANGES))
    size = len(kinds) - kinds.count(b" ")
    return changes >= _LEAST_CHANGES * size and changes >= _FEWEST_CHANGES


_LEAST_CHANGES = 0.2
_FEWEST_CHANGES = 3
_CHANGES = (b"aA", b"a0", b"A0", b"0a", b"0A")


def _kind(letter: bytes) -> bytes:
    return (
        b"0"
        if letter.isdigit()
        else b"A"
        if letter.isupper()
        else b"a"
        if letter.islower()
        else b" "
    )


_KINDS = b"".join(_kind(bytes((byte,))) for byte in range(256))
