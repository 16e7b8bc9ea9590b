"""Profiles: which sessions belong to them, and the versions of their identity files.

A version is identified by the hash of its bytes. An agent's edit is stored with the content at that
moment (`self_edit`). A file read at the start or end of a session (`session_sync`) is stored only
if it differs from the folder's last known content and from all versions. So an old copy never
replaces a newer edit.
"""

import hashlib
import logging
import time

from hivepipe.config.trust import untrusted
from hivepipe.db import profiles
from hivepipe.db.database import Database
from hivepipe.db.history import insert_log
from hivepipe.errors import BadEnvelopeError, ProfileError
from hivepipe.events.claude_code import IDENTITY_FILES, valid_id
from hivepipe.home import locate
from hivepipe.hook.identity_snapshots import MOST_BYTES, read_regular
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.profiles import EnterProfile, SyncIdentity
from hivepipe.times import now

LEAST_CHARS = 100
_UNTRUSTED = "it is in a work tree, and this version is not trusted by `hivepipe trust`"
SOURCES = ("self_edit", "session_sync", "lead", "cli")

logger = logging.getLogger("hivepipe.profiles")


def enter_profile(db: Database, job: Origin, args: EnterProfile) -> None:
    """Record that a session belongs to a profile."""
    profiles.add_profile(db, args.profile_id, job.time)
    profiles.enter_profile(db, args.profile_id, job.session, args.swarm, args.folder, job.time)


def sync_identity(db: Database, job: Origin, args: SyncIdentity) -> None:
    profile, name, source = args.profile_id, args.name, args.source
    if name not in IDENTITY_FILES or source not in SOURCES:
        raise BadEnvelopeError("not an identity file, or of an unknown source")
    data = read_regular(f"{locate('.').home}/identity/{args.snapshot}")
    if data is None:
        logger.warning("%s of %s: its copy is missing", name, profile)
        return
    profiles.add_profile(db, profile, job.time)
    folder, digest = args.folder, digest_of(data)
    refusal = refusal_of(data)
    if refusal:
        message = f"{name} of profile {profile} is not stored: {refusal}"
        insert_log(db, job, "WARNING", message, "{}")
        return
    if _is_news(db, profile, folder, name, digest, source):
        if untrusted(locate(".").home, [(f"{folder}/{name}", digest)]):
            message = f"{name} of profile {profile} is not stored: {_UNTRUSTED}"
            insert_log(db, job, "WARNING", message, "{}")
            return
        profiles.add_version(db, job, profile, name, digest, data.decode(), source)
    profiles.set_baseline(db, profile, folder, name, digest, job.event_time_ns)


def _is_news(db: Database, profile: str, folder: str, name: str, digest: str, source: str) -> bool:
    current = profiles.current_version(db, profile, name)
    if current is None:
        return True
    if source != "session_sync":
        return bool(current["sha256"] != digest)
    known = profiles.baseline(db, profile, folder, name)
    return bool(known) and known != digest and not profiles.is_version(db, profile, name, digest)


def refusal_of(data: bytes) -> str:
    """Return the reason not to store this content, or ""."""
    if len(data) > MOST_BYTES:
        return f"it has more than {MOST_BYTES // 1024} kB"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    characters = len(text.strip())
    if "\0" in text:
        return "it is not a text"
    return f"{characters} characters, at least {LEAST_CHARS}" if characters < LEAST_CHARS else ""


def digest_of(data: bytes) -> str:
    """Return the hash that identifies a version."""
    return hashlib.sha256(data).hexdigest()


# ---- `hivepipe profile`


def change(db: Database, named: str, role: str | None, write_claude_md: bool | None) -> str:
    """Add a profile, or change the given values; return its id. May raise ProfileError."""
    profile, (at, _) = id_of(named), now()
    with db.transaction():
        profiles.add_profile(db, profile, at)
        profiles.change_profile(db, profile, role, write_claude_md, at)
    return profile


def id_of(text: str) -> str:
    """Return the id of a profile. Raise ProfileError if it is not valid."""
    if profile := valid_id(text):
        return profile
    raise ProfileError(f"{text!r} cannot be an id: letters, digits, '.', '_', '-'")


def put(db: Database, profile: str, name: str, data: bytes, source: str) -> bool:
    """Store `data` as a file's current version; return False if that version has this content.

    Raise ProfileError if the data may not be stored.
    """
    if refusal := refusal_of(data):
        raise ProfileError(f"{name} is not stored: {refusal}")
    digest, time_ns = digest_of(data), time.time_ns()
    origin = Origin(id=f"{source}-{time_ns}", operation="sync_identity", event_time_ns=time_ns)
    with db.transaction():
        current = profiles.current_version(db, profile, name)
        if current is not None and current["sha256"] == digest:
            return False
        profiles.add_profile(db, profile, origin.time)
        profiles.add_version(db, origin, profile, name, digest, data.decode(), source)
    return True


def remove(db: Database, profile: str) -> None:
    """Remove a profile. Raise ProfileError if an open session uses it."""
    with db.transaction():
        if sessions := profiles.open_sessions_of(db, profile):
            raise ProfileError(f"session {sessions[0]} works as {profile}: end it first")
        profiles.remove_profile(db, profile)
