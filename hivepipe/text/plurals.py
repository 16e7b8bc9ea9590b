"""Numbers with English nouns: the only module that forms plurals."""


def counted(number: int, thing: str, verb: str = "") -> str:
    """Return a number with its noun, and with a verb that agrees.

    counted(1, "failed job") is "1 failed job"; counted(2, "event", "wait") is "2 events wait".
    """
    noun = thing if number == 1 else plural(thing)
    return f"{number:,} {noun}" + (f" {agreeing(number, verb)}" if verb else "")


def plural(thing: str) -> str:
    """Return the plural of a noun, or of a phrase with its noun at the end or before `of`."""
    head, of, rest = thing.partition(" of ")
    if head.endswith("y") and head[-2:-1] not in "aeiou":
        head = f"{head[:-1]}ie"
    elif head.endswith(("ss", "ch")):
        head += "e"
    return f"{head}s{of}{rest}"


def agreeing(number: int, verb: str) -> str:
    """Return the form of a verb that fits a number; `verb` is the plural form, such as `wait`."""
    if number != 1:
        return verb
    first, space, rest = verb.partition(" ")
    singular = {"are": "is", "were": "was", "have": "has", "go": "goes"}.get(first, f"{first}s")
    return f"{singular}{space}{rest}"
