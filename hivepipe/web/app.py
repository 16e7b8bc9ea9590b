"""The application: routes for each view, its JSON, the stream of changes, and the forms.

Modules that need the Redis client, the tools and the templates are imported at first use. The Redis
client alone takes a third of the memory of an idle server.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from hivepipe.errors import HivepipeError
from hivepipe.files.memory import release_memory
from hivepipe.home import Place
from hivepipe.reading.homes import homes_named, known_homes
from hivepipe.stack.project_records import record_files
from hivepipe.team import membership
from hivepipe.web.authentication import FORMS, TOOLS, Authentication, form_token
from hivepipe.web.changes import Changes, signature, with_logs
from hivepipe.web.folders import PAGES, STATIC
from hivepipe.web.rq_mount import RQ, RqMount
from hivepipe.web.ticket import Used
from hivepipe.web.view_cache import Answer, ViewCache
from hivepipe.web.view_content import content_of, damage_named, status_of, status_with
from hivepipe.web.view_json import json_of
from hivepipe.web.view_query import Content, ViewQuery
from hivepipe.web.views import OF_STACKS, SESSION, UNKNOWN, VIEWS, WITH_TEAM, content_of_view

if TYPE_CHECKING:
    from jinja2 import Environment

EVENT_STREAM = {
    "Content-Type": "text/event-stream",
    "X-Accel-Buffering": "no",  # nginx would hold the stream back until it has some kilobytes
}


def web_app(
    here: Place, token: str, reader_token: str = "", used: Used | None = None, *, is_local: bool
) -> ASGIApp:
    """Return the application for all homes of the user, started from the place `here`.

    `reader_token` gives read-only access; "" disables it. Tickets are added to `used` when used.
    """

    def databases() -> list[Path]:
        return with_logs(known.database() for known in known_homes(here))

    def watched() -> list[Path]:  # `up`, `down`, `on` and `off` change a record
        return [*databases(), *map(Path, record_files())]

    cache = ViewCache(lambda: signature(databases()))
    changes = Changes(watched)
    page = _Page(here, form_token(token), cache, changes.notify)

    async def events(request: Request) -> Response:
        if request.method == "HEAD":  # the stream would never end
            return Response(headers=EVENT_STREAM)
        return StreamingResponse(changes.follow(), headers=EVENT_STREAM)

    async def root(_: Request) -> Response:
        return RedirectResponse("/now", 302)

    async def message(request: Request) -> Response:
        module = await run_in_threadpool(import_module, "hivepipe.web.tools")
        return await module.tools(here, request)  # type: ignore[no-any-return]

    def monitored(request: Request) -> Response:
        module = import_module("hivepipe.web.monitoring")
        return module.monitoring(here, request)  # type: ignore[no-any-return]

    routes: list[BaseRoute] = [Route("/", root), Route("/events", events)]
    routes.append(Route(TOOLS, message, methods=["POST"]))
    for path, action in ((f"{FORMS}{{home}}", "settle"), (f"{FORMS}{{home}}/stack", "switch")):
        routes.append(Route(path, partial(_act, page, token, action), methods=["POST"]))
    routes += [Route("/status.json", monitored), Route("/metrics", monitored)]
    routes += [Route(f"{RQ}{{home}}", _with_slash), Mount(f"{RQ}{{home}}", RqMount(here))]
    for name in (*VIEWS, SESSION):
        path = "/session/{home}/{session}" if name == SESSION else f"/{name}"
        routes.append(Route(f"{path}.json", partial(page.json, name)))
        routes.append(Route(path, partial(page.view, name)))
    static = Mount("/static", StaticFiles(directory=STATIC))
    app = Starlette(routes=[*routes, static], exception_handlers={404: page.unknown})
    return Authentication(app, token, reader_token, used, is_local=is_local)


@cache
def _templates() -> "Environment":
    return import_module("hivepipe.web.templates").templates(PAGES)  # type: ignore[no-any-return]


def _with_slash(request: Request) -> Response:
    return RedirectResponse(f"{request.url.path}/", 302)


@dataclass(frozen=True)
class _Page:
    """The parts that all pages share. `form_token` is put into forms of users with write access.

    `reload_pages` tells open pages to load again.
    """

    here: Place
    form_token: str
    cache: ViewCache
    reload_pages: Callable[[], None]

    def view(self, name: str, request: Request) -> Response:

        def show(content: Content) -> bytes:
            return self.text(request, name, f"{name}.html", content).encode()

        def refuse(error: HivepipeError) -> bytes:
            return self.problem(request, name, error, status_of(error)).encode()

        found = self._answer(name, request, show, refuse, self.reload_pages)
        return HTMLResponse(found.text, found.status)

    def json(self, name: str, request: Request) -> Response:

        def refuse(error: HivepipeError) -> bytes:
            return json_of({"error": str(error)})

        found = self._answer(name, request, json_of, refuse)
        return Response(found.text, found.status, media_type="application/json")

    def _answer(
        self,
        name: str,
        request: Request,
        show: Callable[[Content], bytes],
        refuse: Callable[[HivepipeError], bytes],
        on_ready: Callable[[], None] | None = None,
    ) -> Answer:
        def make() -> Answer:
            try:
                query = _query_of(self.here, request, on_ready)
                content = content_of(partial(content_of_view, name), query)
                with damage_named():
                    text = show(content)
            except HivepipeError as error:
                return Answer(refuse(error), status_of(error))
            finally:
                release_memory()
            return Answer(
                text, status_with(content), is_cacheable=not content.get("not_indexed_bytes")
            )

        if name in OF_STACKS:
            return make()
        asked = (request.scope["path"], request.scope["query_string"])
        return self.cache.get((*asked, request.state.may_change), make)

    def problem(self, request: Request, name: str, error: HivepipeError, status: int) -> str:
        heading = "Not done" if request.method == "POST" else "Nothing to show"
        return self.text(request, name, "error.html", {"error": str(error), "heading": heading})

    def unknown(self, request: Request, _error: Exception) -> Response:
        """Answer a request for a path that no view has."""
        return HTMLResponse(self.text(request, SESSION, "error.html", UNKNOWN), 404)

    def text(self, request: Request, name: str, file: str, content: Content) -> str:
        """Return the template `file` for the view `name`, rendered with the common variables."""
        query = f"?{request.url.query}" if request.url.query else ""
        path = f"/{name}" if request.method == "POST" else request.url.path
        around = {
            "view": name,
            "homes": known_homes(self.here),
            "home": request.query_params.get("home", ""),
            "filters": dict(request.query_params),
            "views": VIEWS,
            "json_url": f"{path}.json{query}",
            "form_token": self.form_token if request.state.may_change else "",
            "unreadable": [],
            "has_team": membership.is_joined(),
            "of_team": request.query_params.get("team") == "1",
            "with_team": WITH_TEAM,
            "of_stacks": OF_STACKS,
        }
        return _templates().get_template(file).render({**around, **content})


async def _act(page: _Page, token: str, action: str, request: Request) -> Response:
    """Execute the action of a form and redirect to its result, or show the question to confirm."""
    control = await run_in_threadpool(import_module, "hivepipe.web.control")
    by = f"page, {request.client.host if request.client else '?'}"
    try:
        fields = await control.sent_form(request, token)
        (known,) = _query_of(page.here, request).homes
        outcome = await run_in_threadpool(getattr(control, action), known, fields, by)
    except HivepipeError as error:
        status = 400 if isinstance(error, control.FormError) else 409
        text = await run_in_threadpool(page.problem, request, "queues", error, status)
        return HTMLResponse(text, status)
    if outcome.address:
        return RedirectResponse(outcome.address, 303)
    text = await run_in_threadpool(page.text, request, "queues", "confirm.html", outcome.question)
    return HTMLResponse(text)


def _query_of(
    here: Place, request: Request, on_ready: Callable[[], None] | None = None
) -> ViewQuery:
    """Return the view's query in a URL; raise HivepipeError for an unknown home."""
    key = request.path_params.get("home", "") or request.query_params.get("home", "")
    session_id = request.path_params.get("session", "")
    filters = dict(request.query_params)
    if filters.get("team") == "1" and session_id:  # `key` is a home of the team's server
        homes = homes_named(here, "")
        return ViewQuery(homes, filters, session_id, team_home=key, here=here.home)
    homes = homes_named(here, key)
    return ViewQuery(homes, filters, session_id, here=here.home, on_ready=on_ready)
