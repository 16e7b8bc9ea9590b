"""The user's own rules, which add to the built-in rules or replace them.

Several files are combined. A rule in a later file replaces a rule with the same name. The patterns
may use the words of the built-in rules.
"""

from collections.abc import Iterable

from hivepipe.errors import RedactionRuleError
from hivepipe.redact import built_in_rules, rule_file
from hivepipe.redact.redactor import Redactor
from hivepipe.redact.rule import Rule
from hivepipe.redact.rule_file import ENGINE_WORDS, Section


def parse(text: str) -> Section:
    """Parse the rules in a config.toml. Raise RedactionRuleError, which names rule and fault."""
    section = rule_file.parse(text, {**ENGINE_WORDS, **built_in_rules.section().words})
    unknown = section.disabled - {rule.name for rule in built_in_rules.rules()}
    if unknown:
        raise RedactionRuleError(f"disable: no built-in rule is called {min(unknown)!r}")
    return section


def redactor(sections: Iterable[Section]) -> Redactor:
    """Return a redactor of the built-in rules and all sections."""
    own: dict[str, Rule] = {}
    allowed: list[str] = []
    disabled: set[str] = set()
    for section in sections:
        own |= {rule.name: rule for rule in section.rules}
        allowed += section.allowed
        disabled |= section.disabled
    kept = [
        rule
        for rule in built_in_rules.rules()
        if rule.name not in disabled and rule.name not in own
    ]
    return Redactor((*own.values(), *kept), allowed)
