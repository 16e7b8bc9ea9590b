"""The rules of a home, for those who may need none: the library of rules is imported with them.

It takes 3 MB. A page shows lines that the rules in force have redacted.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from hivepipe.config import setting_table
from hivepipe.errors import RedactionRuleError
from hivepipe.files.regular_file import read_text
from hivepipe.redact.edition import checksum_of

if TYPE_CHECKING:
    from hivepipe.redact.redactor import Redactor


def load_redactor(home: str) -> "Redactor":
    """Do what `configured.load_redactor` does."""
    load = import_module("hivepipe.redact.configured").load_redactor
    return load(home)  # type: ignore[no-any-return]


def rules_in_force(home: str) -> int:
    """Return the checksum that `load_redactor` gives its redactor, without compiling any rule."""
    return checksum_of(files_of_rules(home).values())


def files_of_rules(home: str) -> dict[Path, str]:
    """Return the files that may have rules, with their contents; RedactionRuleError."""
    found = {}
    for path in map(Path, setting_table.files(home)):
        try:
            found[path] = read_text(path)
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise RedactionRuleError(f"{path}: cannot be read: {error}") from error
    return found
