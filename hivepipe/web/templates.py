"""The templates of pages, and what they may call."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hivepipe.text.sizes import size
from hivepipe.web.asked import address
from hivepipe.web.clock import local_time, time_left, time_of_day
from hivepipe.web.rendered_once import RenderedOnce
from hivepipe.web.unseen import seen


def templates(*folders: Path) -> Environment:
    """Return the templates of these folders; a file of an earlier one counts."""
    pages = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(local=local_time, clock=time_of_day, left=time_left, size=size)
    pages.globals.update(address=address, once=RenderedOnce())
    return pages
