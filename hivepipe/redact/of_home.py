"""The rules of a home; re2 (3 MB) is imported only when the rules are needed.

A page often shows only lines that were redacted with the current rules. Then the page needs no re2.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from hivepipe.redact.edition import checksum_of
from hivepipe.redact.files_of_rules import files_of_rules

if TYPE_CHECKING:
    from hivepipe.redact.redactor import Redactor


def load_redactor(home: str) -> "Redactor":
    """Return the result of `configured.load_redactor`."""
    load = import_module("hivepipe.redact.configured").load_redactor
    return load(home)  # type: ignore[no-any-return]


def rules_in_force(home: str) -> int:
    """Return the checksum that `load_redactor` gives its redactor, but compile no rule.

    Raise RedactionRuleError if a config file cannot be read.
    """
    return checksum_of(files_of_rules(home).values())
