"""Commands `team page` and `team page-login`: the views of a team in a browser, for its members."""

import os
import sys
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

import click

from hivepipe.cli.address_options import bind_option, in_url, is_local, listening_socket
from hivepipe.cli.tables import json_option, show_json
from hivepipe.cli.team.administrators import admin_option, administrator, server
from hivepipe.cli.terminal import say
from hivepipe.errors import NEEDS_PACKAGES, StackError, TeamError
from hivepipe.home import locate
from hivepipe.stack.shared_page import is_installed
from hivepipe.summaries.providers import TEAM_OIDC_SECRET, TEAM_PAGE, kept_secret
from hivepipe.team import invites, membership
from hivepipe.team.connection import one
from hivepipe.text.plurals import counted

if TYPE_CHECKING:
    from hivepipe.web.team_page.identity import Identity

DEFAULT_PORT = 9183
_PORTS = {"http": 80, "https": 443}


class _Site(click.ParamType[str]):
    """The address of a site as browsers write it in Host and Origin."""

    name = "url"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return scheme, host and port of a URL. A default port is left out; "" stays unchanged."""
        if not value:
            return value
        try:
            parts = urlsplit(value)
            host, port = (parts.hostname or "").encode("idna").decode(), parts.port
        except ValueError:
            host, port = "", None
        if not host or parts.scheme not in _PORTS or "@" in parts.netloc or _is_longer(parts):
            self.fail(f"{value!r} is not https://HOST or https://HOST:PORT", param, ctx)
        given = "" if port in (None, _PORTS[parts.scheme]) else f":{port}"
        return f"{parts.scheme}://{in_url(host)}{given}"


def _is_longer(parts: SplitResult) -> bool:
    return bool(parts.path.strip("/") or parts.query or parts.fragment)


@click.command(name="page-login")
@click.option("--revoke", is_flag=True, help="Revoke the logins of all pages instead.")
@admin_option
@json_option
def page_login(revoke: bool) -> None:
    """Create the login of `team page` and print its secret URL.

    Anyone who knows this URL can read what any member can read. Store it with
    `hivepipe credentials set HIVEPIPE_TEAM_PAGE` on the machine that serves the page.
    """
    with administrator() as connection:
        if revoke:
            number = one(connection, "SELECT hivepipe.end_pages()")
        else:
            url = invites.add_page(connection, server()).url
    if revoke:
        if not show_json(revoked=number):
            say(f"revoked: {counted(number, 'login')}")
    elif not show_json(secret=url):
        say(url)
        say(f"this URL is a secret: store it by `hivepipe credentials set {TEAM_PAGE}`", err=True)


@click.command()
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True
)
@bind_option
@click.option(
    "--url",
    type=_Site(),
    default="",
    help="Address of the page in browsers, such as https://hive.acme.",
)
@click.option("--header", metavar="NAME", help="Trust this header of a proxy to name the member.")
@click.option(
    "--proxy",
    "proxies",
    metavar="NETWORK",
    multiple=True,
    help="With --header: an address or network of the proxy.",
)
@click.option("--oidc", metavar="ISSUER", help="Sign in at this OpenID Connect provider.")
@click.option("--client-id", metavar="ID", help="With --oidc: id of this page at the provider.")
@click.option(
    "--claim",
    metavar="NAME",
    default="email",
    show_default=True,
    help="With --oidc: the claim that names the member.",
)
def page(port: int, bind: str, url: str, **who: Any) -> None:
    """Serve the page of a team to its members.

    It shows Now, Agents, Costs, Search, sessions and the audit list. Each member sees what its role
    allows. Give --header with --proxy, or --oidc with --client-id and --url; the client's secret is
    HIVEPIPE_TEAM_OIDC_SECRET. Put a TLS proxy in front of the page.
    """
    if not is_installed():
        raise StackError(f"the page {NEEDS_PACKAGES}")
    identity = _identity(url, **who)
    membership.page_address()  # fails now if the address is missing
    # Extras, which take long to import.
    from hivepipe.web.server import serve  # noqa: PLC0415
    from hivepipe.web.team_page.app import team_page  # noqa: PLC0415

    listening = listening_socket(bind, port)
    say(url or f"http://{in_url(bind)}:{listening.getsockname()[1]}/")
    if not is_local(bind):
        say("reachable from other machines, without TLS: put a proxy in front of it", err=True)
    try:
        if serve(team_page(locate("."), identity, url), listening):
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # the new version
    except KeyboardInterrupt:
        pass


def _identity(
    url: str,
    header: str | None,
    proxies: tuple[str, ...],
    oidc: str | None,
    client_id: str | None,
    claim: str,
) -> "Identity":
    if bool(header) == bool(oidc):
        raise click.UsageError("exactly one of --header and --oidc is required")
    return (
        _by_header(str(header), proxies) if header else _by_oidc(url, str(oidc), client_id, claim)
    )


def _by_header(name: str, proxies: tuple[str, ...]) -> "Identity":
    from hivepipe.web.team_page.identity import TrustedHeader  # noqa: PLC0415

    if not proxies:
        raise click.UsageError(
            "--header needs --proxy: otherwise anyone who reaches the page could name a member"
        )
    try:
        return TrustedHeader(name, [ip_network(each) for each in proxies])
    except ValueError as error:
        raise click.UsageError(f"--proxy: {error}") from None


def _by_oidc(url: str, issuer: str, client_id: str | None, claim: str) -> "Identity":
    secret = kept_secret(TEAM_OIDC_SECRET)
    if not client_id or not url:
        raise click.UsageError("--oidc needs --client-id and --url")
    if not secret:
        raise TeamError(
            f"the client's secret is missing: `hivepipe credentials set {TEAM_OIDC_SECRET}`"
        )
    from hivepipe.web.team_page.oidc import Provider, SignIn, demand_https  # noqa: PLC0415

    demand_https(url)
    return SignIn(Provider(issuer, client_id, secret, claim), url)
