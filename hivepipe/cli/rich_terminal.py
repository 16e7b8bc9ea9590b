"""What is printed by rich: tables, colours, bars, screens."""

from collections.abc import Iterable
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, RenderableType  # noqa: TID251
from rich.segment import Segment

from hivepipe.cli.terminal import raw_stream
from hivepipe.text.visible import printable


class _Console(Console):
    """Rich's console, which renders nothing that steers a terminal but what rich itself makes."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render something, its texts made visible; the newlines are those of the layout."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                text = "\n".join(map(printable, segment.text.split("\n")))
                yield Segment(text, segment.style)


class _Stream:
    """Stdout or stderr as it is at each moment, for what rich makes itself."""

    def __init__(self, err: bool) -> None:
        """`err`: it is stderr."""
        self._err = err

    def __getattr__(self, name: str) -> Any:
        return getattr(raw_stream(self._err), name)


def console(*, err: bool = False, width: int | None = None) -> Console:
    """Return a console of rich's for tables, colours and bars."""
    return _Console(file=cast(IO[str], _Stream(err)), width=width, highlight=False)
