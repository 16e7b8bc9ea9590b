"""Identity files, memory index and pm2 processes at the start and end of a profile's session.

At the start the profile's folder is created, its files are read, and newer versions from the store
are written to the folder. At the end changed files are stored, and the old CLAUDE.md is restored.
"""

import logging
import time
from contextlib import suppress
from pathlib import Path

from hivepipe.db import profiles
from hivepipe.db.database import Database, open_database
from hivepipe.errors import BadEnvelopeError
from hivepipe.events.claude_code import CLAUDE_MD, IDENTITY_FILES
from hivepipe.home import make_folders
from hivepipe.hook.identity_snapshots import keep, read_regular
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.profiles import FinishProcess, SyncIdentity, SyncProfile
from hivepipe.operations.identity_files import is_ours, replace, restore
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.memory import index_folders, index_path
from hivepipe.operations.pm2 import end_tunnels
from hivepipe.operations.profiles import digest_of, refusal_of

KEPT_DAYS = 7

logger = logging.getLogger("hivepipe.profiles")


def sync_profile(context: JobContext, job: Origin, args: SyncProfile) -> None:
    """Synchronise the files of a profile when one of its sessions starts.

    Raise BadEnvelopeError if the folder of the profile is not an absolute path.
    """
    profile, folder = args.profile_id, args.folder
    if not folder.startswith("/"):
        raise BadEnvelopeError("no folder")
    make_folders(folder)
    with open_database(context.home) as db:
        for name in IDENTITY_FILES:
            _write_newer_version(db, context.home, profile, Path(folder, name))
        _enqueue_files(db, context, job, profile, folder)
    _remove_old_copies(context.home)


def finish_process(context: JobContext, job: Origin, _args: FinishProcess) -> None:
    """Clean up after a session's process, which has sent SessionEnd or was killed."""
    with open_database(context.home) as db:
        own = profiles.profile_of_session(db, job.session)
        is_last = own is not None and not profiles.other_sessions_in_folder(
            db, job.session, own["folder"]
        )
        # Read before the folder's current content becomes a version.
        known = _known_claude_md(db, own["profile_id"], own["folder"]) if own else set()
        if own is not None:
            _enqueue_files(db, context, job, own["profile_id"], own["folder"])
    if own is not None and is_last:
        path = Path(own["folder"], CLAUDE_MD)
        refusal = restore(context.home, path, known)
        if refusal:
            logger.warning("%s stays as it is: %s", path, refusal)
    end_tunnels(context.home, job.session)
    if index_path(context.home).exists():  # other programs may have written memories, too
        index_folders(context)


def _write_newer_version(db: Database, home: str, profile: str, path: Path) -> None:
    """Write the stored version of a file into the profile's folder.

    CLAUDE.md is written if the profile has the option `--write-claude-md` and no other profile has
    an open session in the folder. Any other file is written only if it is missing or an old copy
    (`_is_old_copy`), so that no change by a person is lost.
    """
    current = profiles.current_version(db, profile, path.name)
    if current is None or digest_of(current["text"].encode()) != current["sha256"]:
        return  # there is no version, or a secret was redacted in it
    if path.name == CLAUDE_MD:
        others = profiles.others_in_folder(db, profile, str(path.parent))
        if not profiles.writes_claude_md(db, profile) or others:
            return
    else:
        found = read_regular(str(path))
        if found is not None and not _is_old_copy(db, profile, path, digest_of(found)):
            return
    keeps = path.name == CLAUDE_MD
    known = _known_claude_md(db, profile, str(path.parent)) if keeps else set()
    refusal = replace(home, path, current["text"], keeps_before=keeps, known=known)
    if refusal:
        logger.warning("%s of profile %s is not written: %s", path.name, profile, refusal)


def _is_old_copy(db: Database, profile: str, path: Path, digest: str) -> bool:
    """Tell whether `digest` is the last known hash of the file.

    If no hash is known, tell whether `digest` is the hash of a stored version.
    """
    known = profiles.baseline(db, profile, str(path.parent), path.name)
    return digest == known if known else profiles.is_version(db, profile, path.name, digest)


def _enqueue_files(
    db: Database, context: JobContext, job: Origin, profile: str, folder: str
) -> None:
    """Enqueue sync_identity for each current file; sync_identity stores the new content."""
    jobs = []
    for name in IDENTITY_FILES:
        data = read_regular(f"{folder}/{name}")
        is_theirs = name == CLAUDE_MD and _has_user_text(db, context.home, profile, folder)
        if data is None or is_theirs or refusal_of(data):
            continue
        snapshot = keep(context.home, f"{folder}/{name}", job.event_time_ns)
        if snapshot:
            found = SyncIdentity(
                profile_id=profile,
                folder=folder,
                name=name,
                snapshot=snapshot,
                source="session_sync",
            )
            jobs.append(found.job(name))
    if jobs:
        context.follow_up(job, jobs)


def _has_user_text(db: Database, home: str, profile: str, folder: str) -> bool:
    """Tell whether CLAUDE.md has the user's own text, which the profile's version will replace."""
    return (
        not is_ours(home, Path(folder, CLAUDE_MD))
        and profiles.writes_claude_md(db, profile)
        and profiles.current_version(db, profile, CLAUDE_MD) is not None
    )


def _known_claude_md(db: Database, profile: str, folder: str) -> set[str]:
    """Return {hash of CLAUDE.md} if the file is a stored version, else an empty set."""
    data = read_regular(f"{folder}/{CLAUDE_MD}")
    if data is None or not profiles.is_version(db, profile, CLAUDE_MD, digest_of(data)):
        return set()
    return {digest_of(data)}


def _remove_old_copies(home: str) -> None:
    """Remove identity snapshots after KEPT_DAYS, when each was stored or never will be."""
    with suppress(FileNotFoundError):
        # Hooks name snapshots <event time>_<pid>_<name>.
        for path in Path(home, "identity").glob("[0-9]*_[0-9]*_*"):
            if path.is_file() and time.time() - path.stat().st_mtime > KEPT_DAYS * 86_400:
                path.unlink(missing_ok=True)
