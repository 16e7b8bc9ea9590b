"""Checks of the operations that installed packages add."""

from collections.abc import Iterator

from hivepipe.doctor.facts import Facts, Finding
from hivepipe.errors import OperationFailedError
from hivepipe.operations.custom import installed_names
from hivepipe.operations.custom_runs import declaration_by


def loadable(_facts: Facts) -> Iterator[Finding]:
    """Report each installed operation with its events, or why it cannot be loaded."""
    for name in installed_names():
        try:
            declaration = declaration_by(name)
        except OperationFailedError as error:
            yield Finding(f"an installed operation cannot be loaded: {error}")
        else:
            text = f"{name} of an installed package runs on {', '.join(declaration.on)}"
            yield Finding(text, is_note=True)
