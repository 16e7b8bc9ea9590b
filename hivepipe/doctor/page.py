"""Check of the page that the stack runs."""

from collections.abc import Iterator

from hivepipe.doctor.facts import Facts, Finding
from hivepipe.stack.shared_page import is_enabled, is_installed


def installed(_facts: Facts) -> Iterator[Finding]:
    """Find that the settings enable the page, but its packages are missing."""
    if is_enabled() and not is_installed():
        yield Finding("`web = true`, but the page is not installed", "pip install 'hivepipe[web]'")
