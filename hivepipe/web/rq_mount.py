"""RQ's own view of each home at `/rq/HOME/`; Flask is imported at the first request."""

from importlib import import_module

from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hivepipe.errors import HivepipeError
from hivepipe.home import Place
from hivepipe.reading.homes import homes_named

RQ = "/rq/"


class RqMount:
    """An application for each Redis, created at the first request for its home."""

    def __init__(self, here: Place) -> None:
        self._here = here
        self._made: dict[str, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a page of RQ's view of a home."""
        try:
            answer = await run_in_threadpool(self._of_home, scope["path_params"]["home"])
        except HivepipeError as error:
            answer = PlainTextResponse(f"{error}\n", 404)
        await answer(scope, receive, send)

    def _of_home(self, key: str) -> ASGIApp:
        (known,) = homes_named(self._here, key)
        address = known.place().socket
        if address not in self._made:
            self._made[address] = import_module("hivepipe.web.rq_pages").rq_pages(address)
        return self._made[address]
