"""The templates of pages, with their filters and functions."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hivepipe.text.sizes import size
from hivepipe.web.clock import local_time, time_left, time_of_day
from hivepipe.web.control_characters import escape_controls
from hivepipe.web.fragment_cache import FragmentCache
from hivepipe.web.view_query import address


def templates(*folders: Path) -> Environment:
    """Return the templates in these folders; earlier folders take precedence."""
    pages = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escape_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(local=local_time, clock=time_of_day, left=time_left, size=size)
    pages.globals.update(address=address, once=FragmentCache())
    return pages
