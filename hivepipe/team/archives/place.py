"""The place where a team's archives are stored, from the server's setting.

none                                                       archives are not sent
database                                                   in PostgreSQL
s3://BUCKET/PREFIX?endpoint=https://HOST&region=REGION     in S3 or a compatible service
"""

from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from hivepipe.errors import TeamError
from hivepipe.team.address import is_on_this_machine

NONE, DATABASE = "none", "database"
FORM = "s3://BUCKET[/PREFIX][?endpoint=https://HOST][&region=REGION], database or none"
_OPTIONS = {"endpoint", "region"}


class Place(NamedTuple):
    """A place; `bucket` is "" for `none` and `database`."""

    text: str
    bucket: str = ""
    prefix: str = ""
    endpoint: str = ""
    region: str = ""


def parse(text: str) -> Place:
    """Return the place that a setting names. Raise TeamError if it is malformed or unsafe."""
    if text in (NONE, DATABASE):
        return Place(text)
    try:
        parts = urlsplit(text)
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise TeamError(f"the store of archives must be {FORM}") from None
    if parts.scheme != "s3" or not parts.hostname or "@" in parts.netloc or {*options} - _OPTIONS:
        raise TeamError(
            f"the store of archives must be {FORM}, without other options or an access key"
        )
    region = options.get("region", "us-east-1")
    endpoint = options.get("endpoint", f"https://s3.{region}.amazonaws.com")
    _check(endpoint)
    return Place(text, parts.netloc, parts.path.strip("/"), endpoint, region)


def _check(endpoint: str) -> None:
    """Raise TeamError for an endpoint on another machine without TLS."""
    found = urlsplit(endpoint)
    is_local = found.scheme == "http" and is_on_this_machine(found.hostname or "")
    if not found.hostname or (found.scheme != "https" and not is_local):
        raise TeamError(f"the endpoint {endpoint} is not local, and must be https://")
