"""Sign-in by OpenID Connect: code flow with PKCE, state and nonce, by authlib.

This module adds what authlib leaves to its caller: checks of the issuer's name, the audience and
the signature's algorithm, and the encoding of the client's secret.
"""

import logging
import secrets
from base64 import b64encode
from typing import Any, NamedTuple
from urllib.parse import quote_plus, urlencode, urlsplit

from authlib.integrations.starlette_client import OAuth
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from hivepipe.text.urls import is_local
from hivepipe.text.visible import printable
from hivepipe.web.folders import TEAM_PAGES
from hivepipe.web.team_page.browser_sessions import BrowserSessions, signed_in, signing_in
from hivepipe.web.team_page.identity import IdentityError
from hivepipe.web.templates import templates

LOGIN, CALLBACK, LOGOUT = "/login", "/callback", "/logout"
DEFAULT_CLAIM = "email"
_SECS = 10.0
_MOST_TABS = 20  # sign-ins of one browser at the same time
_LONGEST_PATH = 2_000
_ASYMMETRIC = ("RS", "PS", "ES", "Ed")  # the first letters of signature algorithms
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_BASIC, _POST = "client_secret_basic", "client_secret_post"

logger = logging.getLogger("hivepipe.web")


class Provider(NamedTuple):
    """An identity provider, and this page as its client."""

    issuer: str
    client_id: str
    client_secret: str
    claim: str = DEFAULT_CLAIM

    def __repr__(self) -> str:
        return f"Provider({self.issuer})"


class SignIn:
    """Sign-in at a provider; `url` is the public address of the page."""

    def __init__(self, provider: Provider, url: str) -> None:
        """Set up the client. Raise IdentityError if the provider's address is not safe."""
        demand_https(provider.issuer)
        self._provider = provider
        self._url = url.rstrip("/")
        self._sessions = BrowserSessions(is_secure=url.startswith("https://"))
        self._client = _client_at(provider)
        self._signed_out = templates(TEAM_PAGES).get_template("signed_out.html")
        self.routes = (
            Route(LOGIN, self._login),
            Route(CALLBACK, self._callback),
            Route(LOGOUT, self._logout, methods=["POST"]),
        )

    def person(self, request: Request) -> str:
        """Return the member who signed in with this browser, or ""."""
        session = self._sessions.of(request)
        return session.person if session else ""

    def ask(self, request: Request) -> Response:
        """Redirect a browser to the sign-in; answer 401 to other clients."""
        if "text/html" in request.headers.get("Accept", ""):
            query = f"?{request.url.query}" if request.url.query else ""
            asked = f"{request.scope['path']}{query}"[:_LONGEST_PATH]
            return RedirectResponse(f"{LOGIN}?{urlencode({'to': asked})}", 302)
        return PlainTextResponse("sign in first\n", 401)

    async def _login(self, request: Request) -> Response:
        try:
            client = await self._checked_client()
            state: dict[str, Any] = {}
            request.scope["session"] = state
            tab, back = secrets.token_urlsafe(32), f"{self._url}{CALLBACK}"
            answer: Response = await client.authorize_redirect(request, back, state=tab)
        except Exception as error:  # noqa: BLE001  a provider may answer anything
            return self._failed(error, 502)
        session = self._sessions.of(request)
        if session is None or session.person or len(session.data) >= _MOST_TABS:
            session = signing_in()
            self._sessions.begin(answer, session)
        session.until = signing_in().until
        session.data |= state  # authlib itself would remove the state of other tabs
        session.asked[tab] = request.query_params.get("to", "")[:_LONGEST_PATH]
        return answer

    async def _callback(self, request: Request) -> Response:
        session = self._sessions.of(request)
        if session is None:
            return _refused(
                IdentityError("this sign-in was not started here or was already used"), 400
            )
        asked = session.asked.pop(request.query_params.get("state", ""), "").lstrip("/")
        answer = RedirectResponse(f"{self._url}/{asked}", 303)  # never to another site
        if session.person:  # another tab of the browser has signed in meanwhile
            return answer
        request.scope["session"] = session.data
        try:
            person = await self._signed(request)  # authlib removes the state: it is valid once
        except Exception as error:  # noqa: BLE001  as above
            return self._failed(error, 403)
        self._sessions.end(request)
        self._sessions.begin(answer, signed_in(person, session.asked))
        return answer

    async def _logout(self, request: Request) -> Response:
        """Sign the browser out here; the page links to the provider's own sign-out.

        The page has a link, because its policy blocks a form that another site redirects.
        """
        self._sessions.end(request)
        try:
            client = await self._checked_client()
            end = str(client.server_metadata.get("end_session_endpoint") or "")
            if end:
                demand_https(end)
                between = "&" if urlsplit(end).query else "?"
                end += between + urlencode({"client_id": self._provider.client_id})
        except Exception as error:  # noqa: BLE001  as above
            logger.warning("no sign-out at the provider: %s", printable(error))
            end = ""
        return HTMLResponse(self._signed_out.render(end=end, login=LOGIN))

    async def _signed(self, request: Request) -> str:
        """Return the member's name in the provider's ID token, or else in its user info.

        Raise IdentityError if the ID token is missing, or the user info is of another person.
        """
        client = await self._checked_client()
        wanted: dict[str, Any] = {
            "iss": {"essential": True, "values": [self._provider.issuer]},
            "aud": {"essential": True, "values": [self._provider.client_id]},
        }
        token = await client.authorize_access_token(request, claims_options=wanted)
        claims = token.get("userinfo")
        if claims is None:
            raise IdentityError("the provider sent no ID token")
        endpoint = client.server_metadata.get("userinfo_endpoint")
        if endpoint and self._provider.claim not in claims:  # OpenID Connect Core 5.4 permits this
            demand_https(str(endpoint))
            more = await client.userinfo(token=token)
            if more.get("sub") != claims["sub"]:
                raise IdentityError("the user info is of another person")
            claims = more
        return self._named(claims)

    def _named(self, claims: dict[str, Any]) -> str:
        name = claims.get(self._provider.claim)
        if isinstance(name, list):
            raise IdentityError(
                f"the provider sent a list as {self._provider.claim}, not the name of one member"
            )
        if not isinstance(name, str) or not name:
            raise IdentityError(f"the provider sent no {self._provider.claim}")
        if self._provider.claim == "email" and claims.get("email_verified") is not True:
            raise IdentityError("the provider has not verified this e-mail address")
        return name

    def _failed(self, error: Exception, status: int) -> Response:
        """Refuse a sign-in. Replace the client, because it keeps wrong answers and old keys."""
        self._client = _client_at(self._provider)
        return _refused(error, status)

    async def _checked_client(self) -> Any:
        """Return a client that allows only asymmetric signatures; raise IdentityError if unsafe."""
        client = self._client
        found = await client.load_server_metadata()
        if found.get("issuer") != self._provider.issuer:
            expected = self._provider.issuer
            raise IdentityError(f"the provider's issuer is {found.get('issuer')}, not {expected}")
        for name in _ENDPOINTS:
            demand_https(str(found.get(name)))
        known = found.get("id_token_signing_alg_values_supported") or ()
        safe = [each for each in known if each.startswith(_ASYMMETRIC)]
        found["id_token_signing_alg_values_supported"] = safe or ["RS256"]
        ways = found.get("token_endpoint_auth_methods_supported") or [_BASIC]
        found["token_endpoint_auth_method"] = _basic if _BASIC in ways else _POST
        return client


def _basic(client: Any, _method: str, uri: str, headers: Any, body: Any) -> tuple[Any, ...]:
    """Add client id and secret to a request, encoded as RFC 6749 2.3.1 says.

    authlib's own method does not encode them.
    """
    words = ":".join(map(quote_plus, (client.client_id, client.client_secret)))
    headers["Authorization"] = f"Basic {b64encode(words.encode()).decode()}"
    return uri, headers, body


def _client_at(provider: Provider) -> Any:
    return OAuth().register(
        "provider",
        client_id=provider.client_id,
        client_secret=provider.client_secret,
        server_metadata_url=f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration",
        client_kwargs={
            "scope": "openid email profile",
            "code_challenge_method": "S256",
            "timeout": _SECS,
        },
    )


def demand_https(url: str) -> None:
    """Raise IdentityError unless a URL is https, or http on this machine."""
    parts = urlsplit(url)
    is_on_this_machine = parts.scheme == "http" and is_local(url)
    if not is_on_this_machine and (parts.scheme != "https" or not parts.netloc):
        raise IdentityError(f"{url} is not https")


def _refused(error: Exception, status: int) -> Response:
    """Log why a sign-in failed; return a response without the reason, an untrusted text."""
    logger.warning("sign-in failed: %s: %s", type(error).__name__, printable(error))
    return PlainTextResponse("you are not signed in: try again at /login\n", status)
