"""This user's membership in a team, for all homes on this machine.

    ~/.config/hivepipe/team.json         member, machine and sharing limits; exists once joined
    ~/.config/hivepipe/credentials.env   HIVEPIPE_TEAM and HIVEPIPE_TEAM_READER: URLs with secrets

Without the file, as in CI, `drain --uplink` and `team join` use the variable HIVEPIPE_TEAM.
"""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from hivepipe.errors import TeamError
from hivepipe.home import read_small, user_config_folder
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
from hivepipe.team.user_file import write_user_file

FILE_NAME = "team.json"
LIMIT_BYTES = 1 << 18


@dataclass(frozen=True)
class Membership:
    """A member and its machine; `share` maps patterns of projects to levels."""

    member: str = ""
    machine: str = ""
    server: str = ""  # address of the server, without the login
    share: Mapping[str, str] = field(default_factory=dict)


def file_path() -> Path:
    return Path(user_config_folder(), FILE_NAME)


def is_joined() -> bool:
    """Tell whether this machine sends its rows to a team."""
    return file_path().exists()


def stamp() -> tuple[int, int]:
    """Return a value that changes with each change of team.json, or (0, 0) without team.json."""
    try:
        status = os.stat(file_path())
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_ino


def read() -> Membership:
    """Return this user's membership. Raise TeamError if none exists or team.json is damaged."""
    if not is_joined():
        raise TeamError("no team is joined: `hivepipe team join`")
    try:
        found = json.loads(read_small(str(file_path()), LIMIT_BYTES))
        texts = {name: str(found[name]) for name in ("member", "machine", "server")}
        share = {str(pattern): str(level) for pattern, level in found["share"].items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        raise TeamError(f"{file_path()} is damaged: `hivepipe team join` again") from None
    return Membership(**texts, share=share)


def known() -> Membership | None:
    """Return this user's membership, or None if none exists or team.json is damaged."""
    try:
        return read()
    except TeamError:
        return None


def write(membership: Membership) -> None:
    """Write this user's membership to team.json. Raise TeamError if that fails."""
    write_user_file(FILE_NAME, json.dumps(asdict(membership), indent=1) + "\n")


def keep(membership: Membership, machine: Address, reader: Address | None) -> None:
    """Store a new membership: first the secrets, because uplinks start once team.json exists.

    Raise CredentialsError or TeamError on failure.
    """
    write_credential(TEAM, machine.url)
    write_credential(TEAM_READER, reader.url if reader else None)
    write(membership)


def remove() -> None:
    with suppress(FileNotFoundError):
        file_path().unlink()
    write_credential(TEAM, None)
    write_credential(TEAM_READER, None)


def share_at_most(pattern: str, level: Level | None) -> Membership:
    """Set this user's highest level for a pattern of projects; return the new membership.

    None removes the pattern.
    Raise TeamError if the pattern to remove is that of all other projects.
    """
    known = read()
    share = {each: word for each, word in known.share.items() if each != pattern}
    if level:
        share[pattern] = level
    elif pattern == OTHERS:
        raise TeamError("the level of all other projects can be changed, not removed")
    write(replace(known, share=share))
    return replace(known, share=share)


def machine_address() -> Address:
    """Return the address with this machine's login, or raise TeamError."""
    return _kept(TEAM)


def reader_address() -> Address:
    """Return the address with this machine's reader login, or raise TeamError."""
    return _kept(TEAM_READER)


def page_address() -> Address:
    """Return the address with the login of the team's page, or raise TeamError."""
    if secret := kept_secret(TEAM_PAGE):
        return address.parse(secret)
    raise TeamError(
        f"the page has no login: `hivepipe team page-login`, and put it into {TEAM_PAGE} by "
        "`hivepipe credentials set`"
    )


def _kept(name: str) -> Address:
    secret = read_credentials().get(name)
    if not secret:
        raise TeamError("no team is joined on this machine: `hivepipe team join`")
    return address.parse(secret)


def of_environment() -> str:
    """Return HIVEPIPE_TEAM: an invite code or a machine's URL, or "" if it is not set."""
    return (environment("HIVEPIPE_TEAM") or "").strip()
