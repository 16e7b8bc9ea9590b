"""The bytes of segments in S3. Only this module imports obstore, and only when it is used."""

import hashlib
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from hivepipe.errors import TeamAwayError, TeamError, TeamRefusedError
from hivepipe.files.regular_file import read_text
from hivepipe.settings import environment
from hivepipe.summaries.providers import TEAM_STORE, read_credentials
from hivepipe.team.address import SYSTEM_ROOTS, system_roots
from hivepipe.team.archives.place import Place
from hivepipe.team.connection import EXTRA, Connection

if TYPE_CHECKING:
    from obstore.store import ClientConfig, S3Credential

KEYLESS = (
    f"the store of archives needs a key: `hivepipe credentials set {TEAM_STORE}`, as KEY_ID:SECRET"
)
LIMIT = timedelta(seconds=60)
# The operating system's text, or hyper's word, in the debug text of obstore's errors.
CAUSE = re.compile(r'(?:message|error): "([^"]+)"|hyper::Error\(\s*(\w+)')


def has_key() -> bool:
    return bool(_key())


def _key() -> str:
    return (environment(TEAM_STORE) or read_credentials().get(TEAM_STORE) or "").strip()


class Bucket:
    """A bucket, with this user's key. May raise TeamAwayError, TeamRefusedError or TeamError."""

    def __init__(self, place: Place, roots: str = "") -> None:
        """Use the key in the user's credential file; `roots` is a path of root certificates.

        Raise TeamError without the extra, or TeamRefusedError without a key.
        """
        try:
            from obstore.store import S3Store  # noqa: PLC0415  an extra
        except ImportError:
            raise TeamError(EXTRA) from None
        name, colon, secret = _key().partition(":")
        if not (name and colon and secret):
            raise TeamRefusedError(KEYLESS)
        self._store = S3Store(
            place.bucket,
            prefix=place.prefix or None,
            endpoint=place.endpoint,
            region=place.region,
            virtual_hosted_style_request=False,
            # A provider function, so that no AWS_* environment variable overrides the key.
            credential_provider=lambda: _credential(name, secret),
            client_options=_options(place, roots),
            retry_config={"max_retries": 3, "retry_timeout": LIMIT},
        )

    def put(self, name: str, content: bytes) -> None:
        """Write an object atomically; an existing object of this name has the same bytes.

        The object is not looked up first, because a key without the right to list the bucket cannot
        look up objects.
        """
        with _translated():
            self._store.put(name, content, use_multipart=False)

    def get(self, name: str, digest: str) -> bytes:
        """Read an object; raise TeamError if it is missing or does not match the digest."""
        with _translated():
            content = bytes(self._store.get(name).bytes())
        if hashlib.sha256(content).hexdigest() != digest:
            raise TeamError(f"the object {name} was changed in the store")
        return content

    def delete(self, names: Collection[str]) -> None:
        """Delete objects, and ignore missing objects."""
        with _translated(), suppress(FileNotFoundError):
            self._store.delete(list(names))


def bucket_of(connection: Connection, place: Place) -> Bucket:
    """Return a team's bucket; the team server's root certificates also verify the bucket's TLS.

    Raise TeamError or TeamRefusedError as `Bucket` does.
    """
    return Bucket(place, connection.info.get_parameters().get("sslrootcert", ""))


def _options(place: Place, roots: str) -> "ClientConfig":
    options: ClientConfig = {"timeout": LIMIT, "allow_http": place.endpoint.startswith("http://")}
    if roots and roots not in (SYSTEM_ROOTS, system_roots()):
        options["root_certificate"] = read_text(Path(roots))
    return options


def _credential(name: str, secret: str) -> "S3Credential":
    return {"access_key_id": name, "secret_access_key": secret, "expires_at": None}


@contextmanager
def _translated() -> Iterator[None]:
    """Translate obstore's errors into TeamErrors of one line."""
    from obstore import exceptions  # noqa: PLC0415  an extra

    try:
        yield
    except FileNotFoundError as error:
        raise TeamError(f"the store does not have the object: {_text(error)}") from None
    except exceptions.BaseError as error:
        text = _text(error)
        if isinstance(error, exceptions.PermissionDeniedError | exceptions.UnauthenticatedError):
            raise TeamRefusedError(text) from None
        raise TeamAwayError(text) from None


def _text(error: Exception) -> str:
    """Return the first line of an error, and the last cause that its later lines name."""
    first, _, debug = str(error).strip().partition("\n")
    causes = ["".join(groups) for groups in CAUSE.findall(debug)]
    return f"{first}: {causes[-1]}" if causes else first
