"""The redactor that the sections `[redaction]` of the user's and the home's config.toml ask for."""

from pathlib import Path

from hivepipe import redaction, setting_table
from hivepipe.errors import RedactionRuleError
from hivepipe.redaction.redactor import Redactor
from hivepipe.redaction.user_rules import Section, parse, redactor
from hivepipe.regular_file import read_text


def load_redactor(home: str) -> Redactor:
    """Return the redactor of the built-in rules and those in the files, if there are any.

    RedactionRuleError names the file, the rule and its fault.
    """
    found = [_section(Path(path)) for path in setting_table.files(home)]
    sections = [section for section in found if section != Section()]
    return redactor(sections) if sections else redaction.built_in()


def use_rules(home: str) -> str:
    """Put the rules of a home into force in this process; return what is wrong with them, if so.

    Then the built-in rules are in force: work goes on, and no secret that they know passes.
    """
    try:
        redaction.use(load_redactor(home))
    except RedactionRuleError as error:
        redaction.use(redaction.built_in())
        return str(error)
    return ""


def _section(path: Path) -> Section:
    try:
        return parse(read_text(path))
    except FileNotFoundError:
        return Section()
    except (OSError, UnicodeDecodeError) as error:
        raise RedactionRuleError(f"{path}: cannot be read: {error}") from error
    except RedactionRuleError as error:
        raise RedactionRuleError(f"{path}: {error}") from error
