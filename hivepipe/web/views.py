"""The views by name; each is imported at its first use to keep an idle server small."""

from importlib import import_module

from hivepipe.web.view_query import Content, ViewQuery

# In the order of the navigation
VIEWS = ("now", "agents", "search", "costs", "skills", "queues", "health")
SESSION = "session"
OF_STACKS = ("queues", "health")  # their content changes without the databases
UNKNOWN = {"heading": "No such page", "error": "No view has this address.", "json_url": ""}
WITH_TEAM = ("now", "agents", "costs", "search", SESSION)


def content_of_view(name: str, query: ViewQuery) -> Content:
    """Return the content of a view; `team=1` in the URL selects the view of the team."""
    if name in WITH_TEAM and query.filter("team") == "1":
        views = import_module("hivepipe.web.team_views").TEAM_VIEWS
        return views[name](query)  # type: ignore[no-any-return]
    module = import_module(f"hivepipe.web.{name}_view")
    return getattr(module, name)(query)  # type: ignore[no-any-return]
