"""Letters in a locale where I is not the capital of i, such as the Turkish one.

Python's sqlite3 compares the first word of a statement in the letters of the locale. It does not
recognise INSERT there: it counts no rows, and refuses `executemany`.
"""

import _locale

_TWO_LETTERS_I = ("tr", "az", "ku", "crh", "tt")


def use_plain_letters() -> None:
    """Use the letters of C.UTF-8 in this process if those of its locale break sqlite3."""
    if not _locale.setlocale(_locale.LC_CTYPE, None).startswith(_TWO_LETTERS_I):
        return
    try:
        _locale.setlocale(_locale.LC_CTYPE, "C.UTF-8")
    except _locale.Error:  # type: ignore[attr-defined]  # a system without this locale
        _locale.setlocale(_locale.LC_CTYPE, "C")
