"""The one way in: token, cookie, host and origin are checked before any route runs."""

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hivepipe.monitor.admission import cookie_name, is_loopback, is_token
from hivepipe.web.control import FOLDER
from hivepipe.web.tools import PATH

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "connect-src 'self'; img-src 'self'; script-src 'self'; style-src 'self'"
    ),
    "Referrer-Policy": "same-origin",  # with "no-referrer" the Origin of a form is "null"
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_SEND_IT = "send the token of `hivepipe web`: Authorization: Bearer TOKEN\n"
_OPEN_IT = "open the address that `hivepipe web` printed\n"


class Admission:
    """Passes admitted requests on to the application, and hardens every answer."""

    def __init__(self, app: ASGIApp, token: str, *, is_local: bool) -> None:
        """`is_local`: the server listens on the loopback; other host names are refused."""
        self._app = app
        self._token = token
        self._is_local = is_local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; connections other than HTTP are ignored."""
        if scope["type"] != "http":
            return

        async def harden(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._judge(Request(scope))
        await (refusal or self._app)(scope, receive, harden)

    def _judge(self, request: Request) -> Response | None:
        """Return the answer to a request that is not admitted; None: it is."""
        host = request.headers.get("Host", "")
        if self._is_local and not is_loopback(host):
            return PlainTextResponse("call it by the address that `hivepipe web` printed\n", 403)
        # SameSite ignores ports: a page of another server on this machine is the "same site".
        if request.headers.get("Origin", f"http://{host}") != f"http://{host}":
            return PlainTextResponse("not from another page\n", 403)
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        is_known = is_token(bearer, self._token)
        if request.url.path == PATH:  # a POST, so the cookie does not count
            return None if is_known else PlainTextResponse(_SEND_IT, 401)
        if request.method not in ("GET", "HEAD"):
            if request.method != "POST" or not request.url.path.startswith(FOLDER):
                return PlainTextResponse("nothing changes here\n", 405)
            if "Origin" not in request.headers:
                return PlainTextResponse("not from another page\n", 403)
        if is_token(request.query_params.get("token", ""), self._token):
            return self._enter(request)
        if is_known or is_token(self._cookie(request), self._token):
            return None
        return PlainTextResponse(_OPEN_IT, 401)

    def _cookie(self, request: Request) -> str:
        return request.cookies.get(cookie_name(self._token), "")

    def _enter(self, request: Request) -> Response:
        """Set the cookie and take the token out of the address."""
        # A path of two slashes would name another host.
        answer = RedirectResponse("/" + request.url.path.lstrip("/"), 302)
        name = cookie_name(self._token)
        answer.set_cookie(name, self._token, httponly=True, samesite="strict")
        return answer
