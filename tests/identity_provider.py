"""An OpenID Connect provider on loopback: code flow with PKCE, and optional misbehaviour."""

import hashlib
import secrets
import time
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import unquote_plus, urlencode

import httpcore2
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.web_scene import served

CLIENT, SECRET = "the-page", "s3cret-of-the-page"  # pragma: allowlist secret


def s256(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


@dataclass
class Provider:
    """Who signs in, which claims replace others, and how the ID token is signed."""

    issuer: str
    person: str = "ann@acme.example"
    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    signs: str = "RS256"
    has_token: bool = True
    secret: str = SECRET
    info: dict[str, Any] | None = None  # claims of the user info that the ID token lacks
    wrong: dict[str, Any] = field(default_factory=dict)  # whole answers by the path's last part
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))
    stranger: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one"}))

    def reset(self) -> None:
        self.person, self.signs, self.has_token = "ann@acme.example", "RS256", True
        self.claims, self.metadata, self.refused, self.wrong = {}, {}, [], {}
        self.secret, self.info = SECRET, None

    def discovery(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "jwks_uri": f"{self.issuer}/jwks",
                "userinfo_endpoint": f"{self.issuer}/userinfo",
                "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
                **self.metadata,
            }
        )

    def jwks(self, _: Request) -> Response:
        return JSONResponse({"keys": [self.key.as_dict(private=False)]})

    def authorize(self, request: Request) -> Response:
        """Sign the person in without a question and redirect back."""
        asked = dict(request.query_params)
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        assert len(asked["state"]) > 20
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        back = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}", 302)

    async def token(self, request: Request) -> Response:
        """Exchange a code once for a token, given the verifier and the client's secret."""
        form = {name: str(value) for name, value in (await request.form()).items()}
        if self.client_of(request, form) != (CLIENT, self.secret):
            self.refused.append("client")
            return JSONResponse({"error": "invalid_client"}, 401)
        asked = self.codes.pop(form.get("code", ""), None)
        if asked is None:
            self.refused.append("code")
            return JSONResponse({"error": "invalid_grant"}, 400)
        if s256(form.get("code_verifier", "")) != asked["code_challenge"]:
            self.refused.append("verifier")
            return JSONResponse({"error": "invalid_grant"}, 400)
        answer = {"access_token": secrets.token_urlsafe(16), "token_type": "Bearer"}
        if self.has_token:
            answer["id_token"] = self.signed(asked["nonce"])
        return JSONResponse(answer)

    def client_of(self, request: Request, form: dict[str, str]) -> tuple[str, str]:
        """Return id and secret: from the form if only that is supported, else as RFC 6749 says."""
        ways = self.metadata.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        if ways == ["client_secret_post"]:
            return form.get("client_id", ""), form.get("client_secret", "")
        basic = b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
        name, _, secret = basic.partition(":")
        return unquote_plus(name), unquote_plus(secret)

    def userinfo(self, request: Request) -> Response:
        assert request.headers["Authorization"].startswith("Bearer ")
        return JSONResponse({"sub": "7", **(self.info or {})})

    def signed(self, nonce: str) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT, "sub": "7", "nonce": nonce, "iat": now,
            "exp": now + 300, "email": self.person, "email_verified": True,
            "preferred_username": self.person.partition("@")[0], **self.claims,
        }  # fmt: skip
        left_out = self.info or {}
        claims = {
            name: value
            for name, value in claims.items()
            if value is not None and (name == "sub" or name not in left_out)
        }
        if self.signs == "none":
            head = urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').decode().rstrip("=")
            body = jwt.encode({"alg": "RS256"}, claims, self.key).split(".")[1]
            return f"{head}.{body}."
        if self.signs == "HS256":  # signed with the public key, which everybody knows
            public = OctKey.import_key(self.key.as_pem(private=False))
            return jwt.encode({"alg": "HS256", "kid": "one"}, claims, public, algorithms=["HS256"])
        if self.signs == "ES256":
            other = ECKey.generate_key("P-256")
            return jwt.encode({"alg": "ES256"}, claims, other)
        key = self.stranger if self.signs == "stranger" else self.key
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)

    async def answer(self, request: Request, call_next: Any) -> Response:
        """Give the wrong answer of a path, if it has one."""
        wrong = self.wrong.get(request.url.path.rpartition("/")[2], self)
        return await call_next(request) if wrong is self else JSONResponse(wrong)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self.discovery),
                Route("/jwks", self.jwks),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
                Route("/userinfo", self.userinfo),
            ],
            middleware=[Middleware(BaseHTTPMiddleware, dispatch=self.answer)],
        )


@contextmanager
def identity_provider() -> Iterator[Provider]:
    """Run a provider.

    Each client would load all certificates of authorities, in 20 ms, but none uses TLS.
    """
    made: list[Provider] = []

    def app_at(url: str) -> Starlette:
        made.append(Provider(url))
        return made[0].app()

    with served(app_at), pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("httpcore2.default_ssl_context", cache(httpcore2.default_ssl_context))
        yield made[0]
