"""Authentication: token, cookie, host and origin are checked before any route runs."""

import hmac
import re
from hashlib import blake2b

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from hivepipe.text.urls import is_local
from hivepipe.web.headers import hardened
from hivepipe.web.peer import user_of_peer
from hivepipe.web.ticket import NAME, Tickets, Used

FORMS = "/queues/"
TOOLS = "/mcp"
_BEARER = re.compile("^bearer +", re.IGNORECASE)  # clients write the scheme in either case
_SEND_IT = "send the token of `hivepipe web`: Authorization: Bearer TOKEN\n"
_OPEN_IT = "open the address that `hivepipe web` printed\n"


def form_token(token: str) -> str:
    """Return the CSRF token of forms: an HMAC of the server's token."""
    return hmac.digest(token.encode(), b"form", "sha256").hex()


class Authentication:
    """ASGI middleware that authenticates requests and adds security headers to every response."""

    def __init__(
        self, app: ASGIApp, token: str, reader_token: str, used: Used | None, *, is_local: bool
    ) -> None:
        """Set up; `reader_token` gives read-only access ("": none), `used` has the used tickets.

        With `is_local`, the server listens on loopback, and other host names are refused.
        """
        self._app = app
        self._token = token
        self._tokens = [each for each in (token, reader_token) if each]
        self._is_local = is_local
        self._tickets = Tickets(token, {} if used is None else used)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; connections other than HTTP are ignored."""
        if scope["type"] != "http":
            return
        refusal = self._judge(Request(scope))
        await (refusal or self._app)(scope, receive, hardened(scope, send))

    def _judge(self, request: Request) -> Response | None:
        """Return the response to a request that is refused, or None if it is admitted."""
        host, path = request.headers.get("Host", ""), request.scope["path"]
        if self._is_local and not is_local(f"//{host}"):  # names are not resolved
            return PlainTextResponse(
                "open this page by the address that `hivepipe web` printed\n", 403
            )
        # SameSite ignores ports: a page of another server on this machine is the "same site".
        # Behind a TLS proxy the browser's address has https.
        if request.headers.get("Origin", f"http://{host}") not in _origins(host):
            return PlainTextResponse("another page sent this: it is refused\n", 403)
        bearer = _BEARER.sub("", request.headers.get("Authorization", ""))
        known = [each for each in self._tokens if is_token(bearer, each)]
        if path == TOOLS:  # a cookie, which another page could send, does not suffice
            return None if known else PlainTextResponse(_SEND_IT, 401)
        if request.method not in ("GET", "HEAD"):
            if request.method != "POST" or not path.startswith(FORMS):
                return PlainTextResponse("this address can only be read\n", 405)
            if "Origin" not in request.headers:
                return PlainTextResponse("another page sent this: it is refused\n", 403)
        user = user_of_peer(request.scope)
        if token := self._token_in_address(request, user):
            return self._enter(request, token, user)
        known += [each for each in self._tokens if _has_cookie(request, each, user)]
        request.state.may_change = self._token in known
        if request.method == "POST" and known and not request.state.may_change:
            return PlainTextResponse("this address is read-only\n", 403)
        return None if known else PlainTextResponse(_OPEN_IT, 401)

    def _token_in_address(self, request: Request, user: str) -> str:
        """Return the valid token in the URL, given directly or through a ticket, or ""."""
        given = request.query_params.get("token", "")
        found = [each for each in self._tokens if is_token(given, each)]
        if not found and self._tickets.redeem(request.query_params.get(NAME, ""), user):
            return self._token
        return found[0] if found else ""

    def _enter(self, request: Request, token: str, user: str) -> Response:
        """Set the browser's cookie, and redirect to the URL without the token."""
        # A path that starts with two slashes would redirect to another host.
        answer = RedirectResponse("/" + request.url.path.lstrip("/"), 302)
        value = cookie_value(token, user)
        answer.set_cookie(cookie_name(token), value, httponly=True, samesite="strict")
        return answer


def _origins(host: str) -> tuple[str, str]:
    return f"http://{host}", f"https://{host}"


def cookie_name(token: str) -> str:
    """Return the cookie's name, which differs for each server, because cookies ignore ports."""
    return f"hivepipe_{blake2b(token.encode(), digest_size=4).hexdigest()}"


def cookie_value(token: str, user: str) -> str:
    """Return the value of the cookie: an HMAC of the token that is valid only for this user.

    Browsers send a cookie to every port of a host, and thus also to servers of other users.
    """
    return hmac.digest(token.encode(), f"cookie {user}".encode(), "sha256").hex()


def is_token(given: str, token: str) -> bool:
    """Tell whether `given` is the token, compared in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _has_cookie(request: Request, token: str, user: str) -> bool:
    return is_token(request.cookies.get(cookie_name(token), ""), cookie_value(token, user))
