"""This user's membership in a team, for all homes on this machine.

    ~/.config/hivepipe/team.json         who we are, and what we share at most; it exists: joined
    ~/.config/hivepipe/credentials.env   HIVEPIPE_TEAM and HIVEPIPE_TEAM_READER: URLs with secrets

Without a file, as in CI, the variable HIVEPIPE_TEAM serves `drain --uplink` and `team join`.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from hivepipe.errors import TeamError
from hivepipe.home import make_folders, read_small, user_config_folder, write_small
from hivepipe.settings import environment
from hivepipe.summaries.providers import (
    TEAM,
    TEAM_PAGE,
    TEAM_READER,
    kept_secret,
    read_credentials,
    write_credential,
)
from hivepipe.team import address
from hivepipe.team.address import Address
from hivepipe.team.policy import OTHERS, Level

FILE_NAME = "team.json"
LIMIT_BYTES = 1 << 18


@dataclass(frozen=True)
class Membership:
    """A member and its machine; `share`: pattern of projects -> level."""

    member: str = ""
    machine: str = ""
    server: str = ""  # without login
    share: Mapping[str, str] = field(default_factory=dict)


def file_path() -> Path:
    """Return the path of the membership."""
    return Path(user_config_folder(), FILE_NAME)


def is_joined() -> bool:
    """Tell whether this machine ships its rows to a team."""
    return file_path().exists()


def stamp() -> tuple[int, int]:
    """Return a value that changes with the file; (0, 0): there is none."""
    try:
        status = os.stat(file_path())
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_ino


def read() -> Membership:
    """Return the membership; TeamError: none, or the file is damaged."""
    if not is_joined():
        raise TeamError("no team is joined: hivepipe team join")
    try:
        found = json.loads(read_small(str(file_path()), LIMIT_BYTES))
        texts = {name: str(found[name]) for name in ("member", "machine", "server")}
        share = {str(pattern): str(level) for pattern, level in found["share"].items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise TeamError(f"{file_path()} is damaged: hivepipe team join again") from None
    return Membership(**texts, share=share)


def write(membership: Membership) -> None:
    """Keep the membership; TeamError: it cannot be written."""
    path = str(file_path())
    try:
        make_folders(os.path.dirname(path))
        write_small(path, json.dumps(asdict(membership), indent=1) + "\n")
    except OSError as error:
        raise TeamError(f"{path} cannot be written: {error.strerror}") from None


def keep(membership: Membership, machine: Address, reader: Address | None) -> None:
    """Keep a new membership with its secrets; the secrets first: the file switches uplinks on."""
    write_credential(TEAM, machine.url)
    write_credential(TEAM_READER, reader.url if reader else None)
    write(membership)


def remove() -> None:
    """End the membership on this machine."""
    with suppress(FileNotFoundError):
        file_path().unlink()
    write_credential(TEAM, None)
    write_credential(TEAM_READER, None)


def share_at_most(pattern: str, level: Level | None) -> Membership:
    """Set what this user shares of these projects at most; None: as of all others."""
    known = read()
    share = {each: word for each, word in known.share.items() if each != pattern}
    if level:
        share[pattern] = level
    elif pattern == OTHERS:
        raise TeamError("the level of all other projects can be changed, not removed")
    write(replace(known, share=share))
    return replace(known, share=share)


def machine_address() -> Address:
    """Return the address of this machine's own login; TeamError: there is none."""
    return _kept(TEAM)


def reader_address() -> Address:
    """Return the address of this machine's login for reading; TeamError: there is none."""
    return _kept(TEAM_READER)


def page_address() -> Address:
    """Return the address of the login that reads for the persons of a page; TeamError: none."""
    if secret := kept_secret(TEAM_PAGE):
        return address.parse(secret)
    raise TeamError(
        f"the page has no login: hivepipe team page-login, and put it into {TEAM_PAGE} by "
        "`hivepipe credentials set`"
    )


def _kept(name: str) -> Address:
    secret = read_credentials().get(name)
    if not secret:
        raise TeamError("no team is joined on this machine: hivepipe team join")
    return address.parse(secret)


def of_environment() -> str:
    """Return what HIVEPIPE_TEAM holds: an invite, or the URL of a machine; "" without it."""
    return (environment("HIVEPIPE_TEAM") or "").strip()
