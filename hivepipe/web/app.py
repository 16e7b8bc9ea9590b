"""The application: a route for each view, its JSON twin, the stream of changes, and the form.

What asks the stacks needs Redis' library, a third of the memory of a page that nobody uses. It is
imported at its first use, and so are the tools.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from hivepipe.db.location import database_path
from hivepipe.errors import HivepipeError
from hivepipe.home import Place
from hivepipe.reading.homes import homes_named, known_homes
from hivepipe.text.sizes import size
from hivepipe.web.admission import FORMS, TOOLS, Admission, form_token
from hivepipe.web.asked import Asked, Content, FilterError, address
from hivepipe.web.changes import Changes
from hivepipe.web.clock import local_time, time_left, time_of_day
from hivepipe.web.readable import content_of, damage_named
from hivepipe.web.rq_mount import RQ, RqMount
from hivepipe.web.session_view import session
from hivepipe.web.twin import json_of
from hivepipe.web.unseen import seen
from hivepipe.web.views import VIEWS

_FOLDER = Path(__file__).parent
EVENT_STREAM = "text/event-stream"
View = Callable[[Asked], Content]


def web_app(here: Place, token: str, reader_token: str = "", *, is_local: bool) -> ASGIApp:
    """Return the application for all homes of the user; `here`: the place it was started from.

    `reader_token` admits to reading alone; "": there is none.
    """
    page = _Page(here, _templates(), form_token(token))
    changes = Changes(lambda: [database_path(known.home) for known in known_homes(here)])

    async def events(request: Request) -> Response:
        if request.method == "HEAD":  # a stream would hold the connection for ever
            return Response(media_type=EVENT_STREAM)
        return StreamingResponse(changes.follow(), media_type=EVENT_STREAM)

    async def root(_: Request) -> Response:
        return RedirectResponse("/now", 302)

    async def message(request: Request) -> Response:
        answers = await run_in_threadpool(import_module, "hivepipe.web.tools")
        return await answers.tools(here, request)  # type: ignore[no-any-return]

    async def monitored(request: Request) -> Response:
        reports = await run_in_threadpool(import_module, "hivepipe.web.monitoring")
        return await run_in_threadpool(reports.monitoring, here, request)

    async def settle(request: Request) -> Response:
        return await _settled(page, token, request)

    async def turn(request: Request) -> Response:
        return await _switched(page, token, request)

    routes: list[BaseRoute] = [Route("/", root), Route("/events", events)]
    routes.append(Route(TOOLS, message, methods=["POST"]))
    routes.append(Route(f"{FORMS}{{home}}", settle, methods=["POST"]))
    routes.append(Route(f"{FORMS}{{home}}/stack", turn, methods=["POST"]))
    routes += [Route("/status.json", monitored), Route("/metrics", monitored)]
    routes += [Route(f"{RQ}{{home}}", _with_slash), Mount(f"{RQ}{{home}}", RqMount(here))]
    views = {**VIEWS, "session": session}
    for name, view in views.items():
        path = "/session/{home}/{session}" if name == "session" else f"/{name}"
        routes.append(Route(f"{path}.json", partial(_twin, here, view)))
        routes.append(Route(path, partial(page.view, view, name)))
    static = Mount("/static", StaticFiles(directory=_FOLDER / "static"))
    return Admission(Starlette(routes=[*routes, static]), token, reader_token, is_local=is_local)


def _templates() -> Environment:
    pages = Environment(
        loader=FileSystemLoader(_FOLDER / "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=seen,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pages.filters.update(local=local_time, clock=time_of_day, left=time_left, size=size)
    pages.globals.update(address=address)
    return pages


def _with_slash(request: Request) -> Response:
    return RedirectResponse(f"{request.url.path}/", 302)


def _twin(here: Place, view: View, request: Request) -> Response:
    try:
        content = content_of(view, _asked(here, request))
        status = 400 if content.get("error") else 200
        with damage_named():
            text = json_of(content)
    except HivepipeError as error:
        text, status = json_of({"error": str(error)}), _status_of(error)
    return Response(text, status, media_type="application/json")


def _status_of(error: HivepipeError) -> int:
    return 400 if isinstance(error, FilterError) else 404


@dataclass(frozen=True)
class _Page:
    """What all pages share; `form_token` is in each form of those who may change something."""

    here: Place
    templates: Environment
    form_token: str

    def view(self, view: View, name: str, request: Request) -> Response:
        """Return the page of a view."""
        try:
            content = content_of(view, _asked(self.here, request))
            status = 400 if content.get("error") else 200
            with damage_named():
                return self.answer(request, name, f"{name}.html", content, status)
        except HivepipeError as error:
            return self.problem(request, name, error, _status_of(error))

    def problem(self, request: Request, name: str, error: HivepipeError, status: int) -> Response:
        """Return a page that says what is wrong."""
        heading = "Nothing to show" if status == 404 else "Not done"
        content = {"error": str(error), "heading": heading}
        return self.answer(request, name, "error.html", content, status)

    def answer(
        self, request: Request, name: str, file: str, content: Content, status: int = 200
    ) -> Response:
        """Return a page of a template."""
        query = f"?{request.url.query}" if request.url.query else ""
        path = f"/{name}" if request.method == "POST" else request.url.path
        around = {
            "view": name,
            "homes": known_homes(self.here),
            "home": request.query_params.get("home", ""),
            "asked": dict(request.query_params),
            "views": list(VIEWS),
            "twin": f"{path}.json{query}",
            "form_token": self.form_token if request.state.may_change else "",
            "unreadable": [],
        }
        text = self.templates.get_template(file).render({**around, **content})
        return HTMLResponse(text, status)


async def _settled(page: _Page, token: str, request: Request) -> Response:
    """Ask about failed jobs, or settle them and lead to the page that tells it."""
    client = request.client.host if request.client else "?"
    control = await run_in_threadpool(import_module, "hivepipe.web.control")
    try:
        choice = await control.sent_form(request, token)
        (known,) = _asked(page.here, request).homes
        outcome = await run_in_threadpool(control.carry_out, known, choice, client)
    except HivepipeError as error:
        status = 400 if isinstance(error, control.FormError) else 409
        return await run_in_threadpool(page.problem, request, "queues", error, status)
    if outcome.done:
        return RedirectResponse(control.after(known, outcome.done), 303)
    return await run_in_threadpool(page.answer, request, "queues", "confirm.html", outcome.question)


async def _switched(page: _Page, token: str, request: Request) -> Response:
    """Pause or resume the work of a home, and lead back to its queues."""
    client = request.client.host if request.client else "?"
    control = await run_in_threadpool(import_module, "hivepipe.web.control")
    try:
        what = await control.sent_switch(request, token)
        (known,) = _asked(page.here, request).homes
        await run_in_threadpool(control.switch, known, what, client)
    except HivepipeError as error:
        status = 400 if isinstance(error, control.FormError) else 409
        return await run_in_threadpool(page.problem, request, "queues", error, status)
    return RedirectResponse(f"/queues?home={known.key}", 303)


def _asked(here: Place, request: Request) -> Asked:
    """Return what the address asks for; HivepipeError: a home that is not the user's."""
    key = request.path_params.get("home", "") or request.query_params.get("home", "")
    session_id = request.path_params.get("session", "")
    return Asked(homes_named(here, key), dict(request.query_params), session_id)
