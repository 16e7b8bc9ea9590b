"""The address of a team's server: TLS with verification, or a local server without TLS.

postgresql://HOST/DATABASE                              TLS, verify-full, the system's root CAs
postgresql://HOST/DATABASE?sslrootcert=/path/ca.pem     TLS, verify-full, these root CAs
postgresql:///DATABASE?host=/run/postgresql&sslmode=disable      a unix socket
postgresql://127.0.0.1/DATABASE?sslmode=disable                  loopback
"""

import os
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from hivepipe.errors import TeamError
from hivepipe.home import absolute

_OPTIONS = ("host", "port", "user", "sslmode", "sslrootcert", "connect_timeout")
DEFAULT_PORT = 5432
SYSTEM_ROOTS = "system"
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # macOS, BSD
)


class Address(NamedTuple):
    """The address of a server and a database, with a login; `shown` omits login and secret."""

    host: str
    port: int
    database: str
    user: str = ""
    secret: str = ""
    roots: str = ""  # empty for a local server without TLS

    def __repr__(self) -> str:
        return f"Address({self.shown})"

    @property
    def shown(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else quote(self.host, safe="")
        return f"postgresql://{host}:{self.port}/{quote(self.database)}"

    @property
    def url(self) -> str:
        """Return the whole URL, with the secret."""
        secret = f":{quote(self.secret, safe='')}" if self.secret else ""
        login = f"{quote(self.user, safe='')}{secret}@" if self.user else ""
        options = {"host": self.host, "port": str(self.port)}
        options |= {"sslrootcert": self.roots} if self.roots else {"sslmode": "disable"}
        return f"postgresql://{login}/{quote(self.database, safe='')}?{urlencode(options)}"

    def with_login(self, user: str, secret: str) -> "Address":
        return self._replace(user=user, secret=secret)

    def parameters(self) -> dict[str, Any]:
        """Return all of libpq's parameters, so that no environment variable changes a parameter."""
        roots = system_roots() if self.roots == SYSTEM_ROOTS else self.roots
        tls = {"sslmode": "verify-full", "sslrootcert": roots} if roots else {}
        login = {"user": self.user} if self.user else {}
        # The password is never sent to the server in clear text.
        login |= {"password": self.secret, "require_auth": "scram-sha-256"} if self.secret else {}
        return {
            "host": self.host,
            "port": self.port,
            "dbname": self.database,
            "gssencmode": "disable",
            "sslmode": "disable",
            "target_session_attrs": "read-write",
            "options": "",
            "client_encoding": "UTF8",
            "application_name": "hivepipe",
            "connect_timeout": 10,
            "keepalives_idle": 20,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 30_000,
            **tls,
            **login,
        }


def system_roots() -> str:
    """Return the system's root certificates, which the OpenSSL in psycopg's wheel does not find."""
    return next(filter(os.path.isfile, _BUNDLES), SYSTEM_ROOTS)


def parse(url: str) -> Address:
    """Return the address in a URL. Raise TeamError if the URL is malformed or unsafe."""
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
        port = parts.port or int(options.get("port", DEFAULT_PORT))
    except ValueError:
        raise TeamError("the address of a team must be postgresql://HOST/DATABASE") from None
    if parts.scheme not in ("postgresql", "postgres") or not parts.path.strip("/"):
        raise TeamError("the address of a team must be postgresql://HOST/DATABASE")
    if unknown := [name for name in options if name not in _OPTIONS]:
        raise TeamError(f"an address of a team has no option {', '.join(unknown)}")
    host = options.get("host") or unquote(parts.hostname or "")
    if not host or "," in host:
        raise TeamError("the address of a team must name one host")
    return Address(
        host=host,
        port=port,
        database=unquote(parts.path.strip("/")),
        user=unquote(parts.username or options.get("user", "")),
        secret=unquote(parts.password or ""),
        roots=_roots(host, options),
    )


def _roots(host: str, options: dict[str, str]) -> str:
    """Return a path (or libpq's `system`) of the root certificates, or "" without TLS.

    Raise TeamError for an `sslmode` that does not verify the server; without TLS the server must be
    on this machine.
    """
    mode = options.get("sslmode", "verify-full")
    if mode == "verify-full":
        roots = options.get("sslrootcert", SYSTEM_ROOTS)
        return roots if roots == SYSTEM_ROOTS else absolute(roots)  # absolute: valid in any folder
    if mode != "disable":
        raise TeamError(
            f"sslmode={mode} does not verify the server: leave it out, the default is verify-full"
        )
    if not is_on_this_machine(host):
        raise TeamError(
            "sslmode=disable is only for a unix socket or loopback: leave it out to use TLS"
        )
    return ""


def is_on_this_machine(host: str) -> bool:
    """Tell whether a host is a unix socket or loopback."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
