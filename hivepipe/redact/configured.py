"""The redactor configured by `[redaction]` in the user's and the home's config.toml."""

from functools import partial
from pathlib import Path

from hivepipe import redact
from hivepipe.errors import RedactionRuleError
from hivepipe.redact.edition import checksum_of
from hivepipe.redact.files_of_rules import files_of_rules
from hivepipe.redact.home_key import key_of
from hivepipe.redact.redactor import Redactor
from hivepipe.redact.rule_file import Section
from hivepipe.redact.user_rules import parse, redactor


def load_redactor(home: str) -> Redactor:
    """Return the redactor of the built-in and configured rules, with the home's key.

    Raise RedactionRuleError, which names the file, the rule and its fault.
    """
    texts = files_of_rules(home)
    found = [_section(path, text) for path, text in texts.items()]
    sections = [section for section in found if section != Section()]
    of_rules = redactor(sections) if sections else redact.built_in()
    return of_rules.of_home(partial(key_of, home), checksum_of(texts.values()))


def use_rules(home: str) -> str:
    """Activate the rules of a home in this process; return an error or "".

    After an error, only the built-in rules are active. The process can continue, and its texts are
    still redacted by these rules.
    """
    try:
        redact.use(load_redactor(home))
    except RedactionRuleError as error:
        redact.use(redact.built_in().of_home(partial(key_of, home)))
        return str(error)
    return ""


def _section(path: Path, text: str) -> Section:
    try:
        return parse(text)
    except RedactionRuleError as error:
        raise RedactionRuleError(f"{path}: {error}") from error
