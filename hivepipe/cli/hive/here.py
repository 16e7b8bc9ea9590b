"""What the commands of `hive` begin and end with."""

from decimal import Decimal

from hivepipe.cli.terminal import say
from hivepipe.home import locate
from hivepipe.orchestrator.folder import Hive, find
from hivepipe.orchestrator.orchestrator import Orchestrator


def here_hive() -> Hive:
    """Return the hive of this folder or of one above; HiveError: there is none."""
    return find(".", locate(".").home)


def say_troubles(orchestrator: Orchestrator) -> None:
    """Say what went wrong beside the work."""
    for trouble in orchestrator.troubles:
        say(f"hivepipe: {trouble}", err=True)


def shown_dollars(amount: Decimal) -> str:
    """Return an amount with cents, and with no more zeros than that."""
    cents = round(amount, 2)
    return f"{cents:.2f}" if cents == amount else f"{amount.normalize():f}"
