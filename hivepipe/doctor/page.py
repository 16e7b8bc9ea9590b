"""Check of the page that is to run with the stack."""

from collections.abc import Iterator

from hivepipe.doctor.facts import Facts, Finding
from hivepipe.stack.shared_page import is_asked_for, is_installed


def installed(_facts: Facts) -> Iterator[Finding]:
    """Find a page that the settings ask for and that cannot run."""
    if is_asked_for() and not is_installed():
        yield Finding("`web = true`, but the page is not installed", "pip install 'hivepipe[web]'")
