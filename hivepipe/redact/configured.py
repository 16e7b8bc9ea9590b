"""The redactor configured by `[redaction]` in the user's and the home's config.toml."""

from functools import partial
from pathlib import Path

from hivepipe import redact
from hivepipe.config import setting_table
from hivepipe.errors import RedactionRuleError
from hivepipe.files.regular_file import read_text
from hivepipe.redact.home_key import key_of
from hivepipe.redact.redactor import Redactor
from hivepipe.redact.rule_file import Section
from hivepipe.redact.user_rules import parse, redactor


def load_redactor(home: str) -> Redactor:
    """Return the redactor of the built-in and configured rules, with the home's key.

    RedactionRuleError names the file, the rule and its fault.
    """
    found = [_section(Path(path)) for path in setting_table.files(home)]
    sections = [section for section in found if section != Section()]
    return _with_key(redactor(sections) if sections else redact.built_in(), home)


def use_rules(home: str) -> str:
    """Activate the rules of a home in this process; return an error or "".

    On an error the built-in rules are active, so that work continues and known secrets are
    redacted.
    """
    try:
        redact.use(load_redactor(home))
    except RedactionRuleError as error:
        redact.use(_with_key(redact.built_in(), home))
        return str(error)
    return ""


def _with_key(found: Redactor, home: str) -> Redactor:
    return found.with_key(partial(key_of, home))


def _section(path: Path) -> Section:
    try:
        return parse(read_text(path))
    except FileNotFoundError:
        return Section()
    except (OSError, UnicodeDecodeError) as error:
        raise RedactionRuleError(f"{path}: cannot be read: {error}") from error
    except RedactionRuleError as error:
        raise RedactionRuleError(f"{path}: {error}") from error
