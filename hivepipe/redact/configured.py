"""The redactor configured by `[redaction]` in the user's and the home's config.toml."""

from functools import partial
from pathlib import Path

from hivepipe import redact
from hivepipe.config import setting_table
from hivepipe.errors import RedactionRuleError
from hivepipe.files.regular_file import read_text
from hivepipe.redact.edition import checksum_of
from hivepipe.redact.home_key import key_of
from hivepipe.redact.redactor import Redactor
from hivepipe.redact.rule_file import Section
from hivepipe.redact.user_rules import parse, redactor


def load_redactor(home: str) -> Redactor:
    """Return the redactor of the built-in and configured rules, with the home's key.

    RedactionRuleError names the file, the rule and its fault.
    """
    texts = _texts(home)
    found = [_section(path, text) for path, text in texts.items()]
    sections = [section for section in found if section != Section()]
    of_rules = redactor(sections) if sections else redact.built_in()
    return of_rules.of_home(partial(key_of, home), checksum_of(texts.values()))


def rules_in_force(home: str) -> int:
    """Return the checksum that `load_redactor` gives its redactor, without compiling any rule."""
    return checksum_of(_texts(home).values())


def use_rules(home: str) -> str:
    """Activate the rules of a home in this process; return an error or "".

    On an error the built-in rules are active, so that work continues and known secrets are
    redacted.
    """
    try:
        redact.use(load_redactor(home))
    except RedactionRuleError as error:
        redact.use(redact.built_in().of_home(partial(key_of, home)))
        return str(error)
    return ""


def _texts(home: str) -> dict[Path, str]:
    """Return the files that may have rules."""
    found = {}
    for path in map(Path, setting_table.files(home)):
        try:
            found[path] = read_text(path)
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise RedactionRuleError(f"{path}: cannot be read: {error}") from error
    return found


def _section(path: Path, text: str) -> Section:
    try:
        return parse(text)
    except RedactionRuleError as error:
        raise RedactionRuleError(f"{path}: {error}") from error
