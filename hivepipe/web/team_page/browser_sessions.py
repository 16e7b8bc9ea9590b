"""Browsers that are signing in or are signed in: a random cookie, and its state in memory.

A restart of the page signs everybody out.
"""

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

MOST = 10_000
SIGNING_IN_SECS = 600
SIGNED_IN_SECS = 12 * 3600


@dataclass
class BrowserSession:
    """A browser that is signed in or, while `person` is "", is signing in.

    For each tab that is signing in, `data` has OpenID's state, and `asked` has the requested path.
    """

    until: float
    person: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)


class BrowserSessions:
    """The browsers that are signing in, and those that are signed in: at most MOST of each.

    Each kind has its own limit, so that sign-ins cannot evict signed-in browsers.
    """

    def __init__(self, *, is_secure: bool) -> None:
        """Set up without browsers; `is_secure` tells whether the page is served over https."""
        self._is_secure = is_secure
        self._name = "__Host-hivepipe_team" if is_secure else "hivepipe_team"
        self._signing_in: dict[str, BrowserSession] = {}
        self._signed_in: dict[str, BrowserSession] = {}

    def of(self, request: Request) -> BrowserSession | None:
        """Return the state of a request's browser, or None if the cookie is invalid or expired."""
        key = self._key(request)
        found = self._signed_in.get(key) or self._signing_in.get(key)
        return found if found and found.until > time.monotonic() else None

    def begin(self, response: Response, session: BrowserSession) -> None:
        """Store a browser's state, and set a new cookie for the browser on a response."""
        sessions = self._signed_in if session.person else self._signing_in
        for old in [*sessions][: max(len(sessions) - MOST + 1, 0)]:
            del sessions[old]
        key = secrets.token_urlsafe(32)
        sessions[key] = session
        # SameSite is lax because the provider's redirect comes from another site.
        response.set_cookie(self._name, key, httponly=True, samesite="lax", secure=self._is_secure)

    def end(self, request: Request) -> None:
        for sessions in (self._signing_in, self._signed_in):
            sessions.pop(self._key(request), None)

    def _key(self, request: Request) -> str:
        return request.cookies.get(self._name, "")


def signing_in() -> BrowserSession:
    """Return a new state for a browser that is sent to the identity provider."""
    return BrowserSession(time.monotonic() + SIGNING_IN_SECS)


def signed_in(person: str, asked: dict[str, str]) -> BrowserSession:
    """Return the state of a member's browser; the tabs in `asked` are still signing in."""
    return BrowserSession(time.monotonic() + SIGNED_IN_SECS, person, asked=asked)
