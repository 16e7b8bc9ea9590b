"""Numbers with English nouns: the only module that forms plurals."""

_IRREGULAR = {"process": "processes", "search": "searches"}


def counted(number: int, thing: str, verb: str = "") -> str:
    """Return a number with its noun, and with a verb that agrees.

    counted(1, "failed job") is "1 failed job"; counted(2, "event", "wait") is "2 events wait".
    """
    noun = thing if number == 1 else plural(thing)
    return f"{number:,} {noun}" + (f" {agreeing(number, verb)}" if verb else "")


def plural(thing: str) -> str:
    """Return the plural of a noun, or of a phrase that ends with one."""
    before, space, noun = thing.rpartition(" ")
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{before}{space}{noun[:-1]}ies"
    return f"{before}{space}{_IRREGULAR.get(noun, f'{noun}s')}"


def agreeing(number: int, verb: str) -> str:
    """Return the form of a verb for a number; `verb` is its plural form: wait, are, have."""
    if number != 1:
        return verb
    first, space, rest = verb.partition(" ")
    singular = {"are": "is", "were": "was", "have": "has", "go": "goes"}.get(first, f"{first}s")
    return f"{singular}{space}{rest}"
