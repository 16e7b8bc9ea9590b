"""The security headers of every response."""

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Scope, Send

_POLICY = "Content-Security-Policy"  # RQ's own view sets a different one
_HEADERS = {
    _POLICY: (
        "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "connect-src 'self'; img-src 'self'; script-src 'self'; style-src 'self'"
    ),
    "Referrer-Policy": "same-origin",  # with "no-referrer" the Origin of a form is "null"
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def hardened(scope: Scope, send: Send) -> Send:
    """Return a `send` that adds the security headers."""

    async def harden(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.update({**_HEADERS, _POLICY: headers.get(_POLICY, _HEADERS[_POLICY])})
        await send(message)

    return harden
