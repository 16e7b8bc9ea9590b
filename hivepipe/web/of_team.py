"""The switch between this machine and its team: `team=1` in the address."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from hivepipe.web.asked import Asked, Content

View = Callable[[Asked], Content]
WITH_TEAM = ("now", "agents", "costs", "search", "session")


def with_team(name: str, view: View) -> View:
    """Return a view that shows the team where the address asks for it."""
    return partial(_shown, name, view) if name in WITH_TEAM else view


def _shown(name: str, view: View, asked: Asked) -> Content:
    if asked.filter("team") != "1":
        return view(asked)
    views = import_module("hivepipe.web.team_views").TEAM_VIEWS
    return views[name](asked)  # type: ignore[no-any-return]
