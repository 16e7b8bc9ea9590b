"""The application: views of the team for signed-in members."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from hivepipe.errors import HivepipeError
from hivepipe.home import Place
from hivepipe.reading.homes import homes_named
from hivepipe.reading.team.audit import newest_reads
from hivepipe.reading.team.source import opened
from hivepipe.web.folders import PAGES, STATIC, TEAM_PAGES
from hivepipe.web.headers import hardened
from hivepipe.web.team_page.identity import Identity, IdentityError
from hivepipe.web.team_page.oidc import LOGOUT
from hivepipe.web.team_views import TEAM_VIEWS
from hivepipe.web.templates import templates
from hivepipe.web.view_content import content_of, status_of, status_with
from hivepipe.web.view_json import json_of
from hivepipe.web.view_query import Content, ViewQuery
from hivepipe.web.views import UNKNOWN

View = Callable[[ViewQuery], Content]
MOST_READS = 500
HEALTH = "/healthy"
_OPEN = ("/static/", HEALTH)


def audit(query: ViewQuery) -> Content:
    """Return the newest audit entries that the signed-in member may see."""
    with opened(query.reader) as source:
        found = newest_reads(source, MOST_READS + 1)
    return {"reads": found[:MOST_READS], "has_more": len(found) > MOST_READS}


_VIEWS: dict[str, View] = {**TEAM_VIEWS, "audit": audit}
_NAVIGATION = [name for name in _VIEWS if name != "session"]


def team_page(here: Place, identity: Identity, url: str) -> ASGIApp:
    """Return the team's ASGI application; `url` is its public address, or "" for any host name."""
    page = _Page(here, templates(TEAM_PAGES, PAGES), identity)

    async def healthy(_: Request) -> Response:
        return PlainTextResponse("yes\n")

    async def root(_: Request) -> Response:
        return RedirectResponse(f"/{_NAVIGATION[0]}", 302)

    routes: list[BaseRoute] = [Route("/", root), Route(HEALTH, healthy), *identity.routes]
    for name in _VIEWS:
        path = "/session/{home}/{session}" if name == "session" else f"/{name}"
        routes.append(Route(f"{path}.json", partial(page.json, name)))
        routes.append(Route(path, partial(page.view, name)))
    routes.append(Mount("/static", StaticFiles(directory=STATIC)))
    app = Starlette(routes=routes, exception_handlers={404: page.unknown})
    return _Gate(app, identity, url)


class _Gate:
    """ASGI middleware that checks host, method, origin and the signed-in member."""

    def __init__(self, app: ASGIApp, identity: Identity, url: str) -> None:
        self._app = app
        self._identity = identity
        self._host = urlsplit(url).netloc
        self._url = url.rstrip("/")
        self._public_paths = [route.path for route in identity.routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; connections other than HTTP are ignored."""
        if scope["type"] == "http":
            answer = self._judged(Request(scope)) or self._app
            await answer(scope, receive, hardened(scope, send))

    def _judged(self, request: Request) -> Response | None:
        path = request.scope["path"]  # `request.url.path` depends on the header Host, too
        if path == HEALTH:
            return None
        if self._host and request.headers.get("Host") != self._host:
            text = (
                f"this page is {self._url}; a proxy in front of it must pass on the header Host\n"
            )
            return PlainTextResponse(text, 403)
        if request.method not in ("GET", "HEAD"):
            if request.method != "POST" or path != LOGOUT:
                return PlainTextResponse("this address can only be read\n", 405)
            if request.headers.get("Origin") != self._url:
                return PlainTextResponse("another page sent this: it is refused\n", 403)
        try:
            person = self._identity.person(request)
        except IdentityError as error:
            return PlainTextResponse(f"{error}\n", 403)
        request.state.person = person
        if person or path.startswith(_OPEN) or path in self._public_paths:
            return None
        return self._identity.ask(request)


@dataclass(frozen=True)
class _Page:
    here: Place
    templates: Environment
    identity: Identity

    def unknown(self, request: Request, _error: Exception) -> Response:
        """Answer a request for a path that no view has."""
        return HTMLResponse(self._text(request, "session", "error.html", UNKNOWN), 404)

    def view(self, name: str, request: Request) -> Response:
        try:
            content = self._content(name, request)
            text = self._text(request, name, f"{name}.html", content)
            return HTMLResponse(text, status_with(content))
        except HivepipeError as error:
            content = {"error": str(error), "heading": "Nothing to show"}
            return HTMLResponse(self._text(request, name, "error.html", content), status_of(error))

    def json(self, name: str, request: Request) -> Response:
        try:
            content = self._content(name, request)
            text, status = json_of(content), status_with(content)
        except HivepipeError as error:
            text, status = json_of({"error": str(error)}), status_of(error)
        return Response(text, status, media_type="application/json")

    def _content(self, name: str, request: Request) -> Content:
        query = ViewQuery(
            homes_named(self.here, ""),
            dict(request.query_params),
            request.path_params.get("session", ""),
            team_home=request.path_params.get("home", ""),
            reader=request.state.person,
            here=self.here.home,
        )
        return content_of(_VIEWS[name], query)

    def _text(self, request: Request, name: str, file: str, content: Content) -> str:
        query = f"?{request.url.query}" if request.url.query else ""
        around: dict[str, Any] = {
            "view": name,
            "views": _NAVIGATION,
            "signed_in": request.state.person,
            "can_leave": bool(self.identity.routes),
            "home": "",
            "filters": dict(request.query_params),
            "json_url": f"{request.url.path}.json{query}",
            "of_team": True,
        }
        return self.templates.get_template(file).render({**around, **content})
