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
class Visit:
    """A browser; `person` is "" during sign-in, and `data` is the state of the sign-in."""

    until: float
    person: str = ""
    data: dict[str, Any] = field(default_factory=dict)


class Visits:
    """All visits, at most MOST of each kind, so that sign-ins cannot evict signed-in browsers."""

    def __init__(self, *, is_secure: bool) -> None:
        """`is_secure` tells whether the page is served over https."""
        self._is_secure = is_secure
        self._name = "__Host-hivepipe_team" if is_secure else "hivepipe_team"
        self._signing_in: dict[str, Visit] = {}
        self._signed_in: dict[str, Visit] = {}

    def of(self, request: Request) -> Visit | None:
        """Return the visit of a request's cookie, or None if it is unknown or expired."""
        key = self._key(request)
        found = self._signed_in.get(key) or self._signing_in.get(key)
        return found if found and found.until > time.monotonic() else None

    def begin(self, response: Response, visit: Visit) -> None:
        """Set a new cookie on a response."""
        visits = self._signed_in if visit.person else self._signing_in
        for old in [*visits][: max(len(visits) - MOST + 1, 0)]:
            del visits[old]
        key = secrets.token_urlsafe(32)
        visits[key] = visit
        # SameSite is lax because the provider's redirect comes from another site.
        response.set_cookie(self._name, key, httponly=True, samesite="lax", secure=self._is_secure)

    def end(self, request: Request) -> None:
        """End the visit of a request."""
        for visits in (self._signing_in, self._signed_in):
            visits.pop(self._key(request), None)

    def _key(self, request: Request) -> str:
        return request.cookies.get(self._name, "")


def signing_in() -> Visit:
    """Return a new visit of a browser that is sent to the provider."""
    return Visit(time.monotonic() + SIGNING_IN_SECS)


def signed_in(person: str) -> Visit:
    """Return a new visit of a signed-in member."""
    return Visit(time.monotonic() + SIGNED_IN_SECS, person)
