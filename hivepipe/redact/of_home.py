"""The rules of a home, for those who may need none: the library of rules is imported with them.

It takes 3 MB. A page shows lines that the rules in force have redacted.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from hivepipe.redact.edition import checksum_of
from hivepipe.redact.files_of_rules import files_of_rules

if TYPE_CHECKING:
    from hivepipe.redact.redactor import Redactor


def load_redactor(home: str) -> "Redactor":
    """Do what `configured.load_redactor` does."""
    load = import_module("hivepipe.redact.configured").load_redactor
    return load(home)  # type: ignore[no-any-return]


def rules_in_force(home: str) -> int:
    """Return the checksum that `load_redactor` gives its redactor, without compiling any rule."""
    return checksum_of(files_of_rules(home).values())
