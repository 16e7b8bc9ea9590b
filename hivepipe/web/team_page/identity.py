"""Who asks: an identity is a name of a member, or a refusal."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Protocol

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from hivepipe.errors import TeamError

Network = IPv4Network | IPv6Network


class IdentityError(TeamError):
    """Nobody is let in by this request."""


class Identity(Protocol):
    """A way to know who asks."""

    @property
    def routes(self) -> Sequence[Route]:
        """Return its routes, which are open to strangers."""

    def person(self, request: Request) -> str:
        """Return the member's name; "": not known yet. IdentityError: it will not be."""

    def ask(self, request: Request) -> Response:
        """Return what a stranger gets."""


@dataclass(frozen=True)
class TrustedHeader:
    """A header of a proxy that signs people in; it counts from the proxy's addresses alone."""

    name: str
    proxies: Collection[Network]
    routes: Sequence[Route] = ()

    def person(self, request: Request) -> str:
        """Return what the header says."""
        client = request.client.host if request.client else ""
        if not _is_of(client, self.proxies):
            raise IdentityError("this page is reached by its proxy alone")
        given = request.headers.getlist(self.name)
        if len(given) > 1:
            raise IdentityError(f"the proxy sent {len(given)} headers {self.name}")
        return given[0].encode("latin-1").decode("utf-8", "replace").strip() if given else ""

    def ask(self, _request: Request) -> Response:
        """Say that the proxy did not name anybody."""
        return PlainTextResponse(f"the proxy sent no header {self.name}\n", 401)


def _is_of(client: str, networks: Collection[Network]) -> bool:
    try:
        found = ip_address(client)
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None) or found
    return any(mapped in network for network in networks)


def network_of(text: str) -> Network:
    """Return a network of an address, such as 10.0.0.7 or 10.0.0.0/8; ValueError."""
    return ip_network(text)
