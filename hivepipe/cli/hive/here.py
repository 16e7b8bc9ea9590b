"""Functions that the commands of `hive` share."""

from decimal import Decimal

from hivepipe.cli.terminal import say
from hivepipe.home import locate
from hivepipe.orchestrator.folder import Hive, find_hive
from hivepipe.orchestrator.orchestrator import Orchestrator


def here_hive() -> Hive:
    """Return the hive of this folder or of a parent. Raises HiveError if there is no hive."""
    return find_hive(".", locate(".").home)


def say_troubles(orchestrator: Orchestrator) -> None:
    """Print to stderr the problems in `troubles`, which did not stop the command."""
    for trouble in orchestrator.troubles:
        say(f"hivepipe: {trouble}", err=True)


def shown_dollars(amount: Decimal) -> str:
    """Return an amount with at least two decimals and no further trailing zeros."""
    cents = round(amount, 2)
    return f"{cents:.2f}" if cents == amount else f"{amount.normalize():f}"
