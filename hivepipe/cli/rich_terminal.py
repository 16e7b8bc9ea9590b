"""Output through rich: tables, colours, progress bars, live screens."""

from collections.abc import Iterable
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, RenderableType  # noqa: TID251
from rich.segment import Segment

from hivepipe.cli.terminal import raw_stream
from hivepipe.text.visible import printable


class _Console(Console):
    """A rich console that escapes the control characters of texts, but not those that rich adds."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render with the control characters of each text escaped, except newlines."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                text = "\n".join(map(printable, segment.text.split("\n")))
                yield Segment(text, segment.style)


class _Stream:
    """The current stdout or stderr without the filter that escapes control characters.

    rich writes to it. `_Console` has escaped the texts already.
    """

    def __init__(self, err: bool) -> None:
        self._err = err

    def __getattr__(self, name: str) -> Any:
        return getattr(raw_stream(self._err), name)


def console(*, err: bool = False) -> Console:
    return _Console(file=cast(IO[str], _Stream(err)), highlight=False)
