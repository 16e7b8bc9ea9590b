"""Authentication of requests: the name of a member, or a refusal."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Protocol

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hivepipe.errors import TeamError

Network = IPv4Network | IPv6Network


class IdentityError(TeamError):
    """The request cannot be authenticated."""


class Identity(Protocol):
    @property
    def routes(self) -> Sequence[Route]:
        """Return the routes of this sign-in method, which need no authentication."""

    def person(self, request: Request) -> str:
        """Return the member's name, or "" before sign-in. Raise IdentityError to refuse."""

    def ask(self, request: Request) -> Response:
        """Return the response to a request that names no member."""


@dataclass(frozen=True)
class TrustedHeader:
    """A header that an authenticating proxy sets; accepted only from the proxy's addresses."""

    name: str
    proxies: Collection[Network]
    routes: Sequence[Route] = ()

    def person(self, request: Request) -> str:
        """Return the value of the header, or "".

        Raise IdentityError for a request past the proxy, or with several such headers.
        """
        client = request.client.host if request.client else ""
        if not _is_of(client, self.proxies):
            raise IdentityError("this page can only be reached through its proxy")
        given = request.headers.getlist(self.name)
        if len(given) > 1:
            raise IdentityError(f"the proxy sent {len(given)} headers {self.name}")
        return given[0].encode("latin-1").decode("utf-8", "replace").strip() if given else ""

    def ask(self, _request: Request) -> Response:
        """Answer that the proxy sent no name."""
        return PlainTextResponse(f"the proxy sent no header {self.name}\n", 401)


def _is_of(client: str, networks: Collection[Network]) -> bool:
    try:
        found = ip_address(client)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return any(mapped in network for network in networks)
