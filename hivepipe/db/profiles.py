"""Profiles, their sessions, and the versions of their identity files.

The current version of a file is its newest version, by the time of the event.
"""

from hivepipe.db.database import Database, Row, new_values
from hivepipe.db.listings import Entry, Listings
from hivepipe.jobs.origin import Origin

_OPEN = """
    profile_sessions JOIN sessions
      ON sessions.id = session_id AND sessions.status IN ('active', 'paused')
"""


def add_profile(db: Database, profile: str, time: str) -> None:
    """Insert a profile. A known profile keeps the earliest creation time."""
    earliest = "(id) DO UPDATE SET created_at = min(profiles.created_at, excluded.created_at)"
    db.insert("profiles", {"id": profile, "created_at": time, "updated_at": time}, earliest)


def change_profile(
    db: Database, profile: str, role: str | None, write_claude_md: bool | None, time: str
) -> None:
    """Set role and `write_claude_md` of a profile. None leaves a value unchanged."""
    sql = """
        UPDATE profiles SET role = COALESCE(:role, role),
          write_claude_md = COALESCE(:write, write_claude_md), updated_at = :time
        WHERE id = :id
    """
    db.execute(sql, {"id": profile, "role": role, "write": write_claude_md, "time": time})


def enter_profile(
    db: Database, profile: str, session: str, swarm: str, folder: str, time: str
) -> None:
    """Record the profile of a session, and the folder of the profile's files."""
    newest = f"""
        (profile_id, session_id) DO UPDATE SET {new_values(("folder", "entered_at"))}
        WHERE excluded.entered_at > profile_sessions.entered_at
    """
    row = {"profile_id": profile, "session_id": session, "swarm_id": swarm, "folder": folder}
    db.insert("profile_sessions", {**row, "entered_at": time}, newest)


def current_version(db: Database, profile: str, name: str) -> Row | None:
    """Return the newest version of a profile's file, or None if no version is stored."""
    sql = """
        SELECT sha256, text, change_source, time_ns FROM identity_versions
        WHERE profile_id = :profile AND name = :name ORDER BY time_ns DESC, id DESC LIMIT 1
    """
    return db.row(sql, {"profile": profile, "name": name})


def is_version(db: Database, profile: str, name: str, sha256: str) -> bool:
    """Tell whether a version of the file has this hash."""
    sql = """
        SELECT 1 FROM identity_versions
        WHERE profile_id = :profile AND name = :name AND sha256 = :sha256
    """
    return db.row(sql, {"profile": profile, "name": name, "sha256": sha256}) is not None


def add_version(
    db: Database, job: Origin, profile: str, name: str, sha256: str, text: str, source: str
) -> None:
    """Insert a version of a profile's file, with the ids of the job and of its session."""
    row = {
        "profile_id": profile,
        "name": name,
        "sha256": sha256,
        "text": text,
        "change_source": source,
        "session_id": job.session or None,
        "created_at": job.time,
        "time_ns": job.event_time_ns,
        "job_id": job.id,
    }
    db.insert("identity_versions", row)


def baseline(db: Database, profile: str, folder: str, name: str) -> str:
    """Return the stored hash of a profile's file `name` in `folder`, or "" if none is stored."""
    sql = """
        SELECT sha256 FROM identity_baselines
        WHERE profile_id = :profile AND folder = :folder AND name = :name
    """
    row = db.row(sql, {"profile": profile, "folder": folder, "name": name})
    return row["sha256"] if row else ""


def set_baseline(
    db: Database, profile: str, folder: str, name: str, sha256: str, time_ns: int
) -> None:
    """Store the hash of a profile's file in this folder, unless a newer hash is stored."""
    newest = f"""
        (profile_id, folder, name) DO UPDATE SET {new_values(("sha256", "time_ns"))}
        WHERE excluded.time_ns >= identity_baselines.time_ns
    """
    row = {"profile_id": profile, "folder": folder, "name": name, "sha256": sha256}
    db.insert("identity_baselines", {**row, "time_ns": time_ns}, newest)


def count_versions(db: Database, profile: str) -> int | None:
    """Return the number of file versions of a profile, or None for an unknown profile."""
    sql = """
        SELECT (SELECT COUNT(*) FROM identity_versions WHERE profile_id = profiles.id) AS versions
        FROM profiles WHERE id = :id
    """
    row = db.row(sql, {"id": profile})
    return row["versions"] if row else None


def open_sessions_of(db: Database, profile: str) -> list[str]:
    sql = f"SELECT session_id FROM {_OPEN} WHERE profile_id = :profile ORDER BY session_id"
    return [row["session_id"] for row in db.rows(sql, {"profile": profile})]


def remove_profile(db: Database, profile: str) -> None:
    """Delete a profile and all its rows."""
    for table in ("identity_versions", "identity_baselines", "profile_sessions"):
        db.execute(f"DELETE FROM {table} WHERE profile_id = :profile", {"profile": profile})
    db.execute("DELETE FROM profiles WHERE id = :profile", {"profile": profile})


def profile_of_session(db: Database, session: str) -> Row | None:
    """Return profile and folder of a session, or None if it has no profile."""
    sql = """
        SELECT profile_id, folder FROM profile_sessions WHERE session_id = :session
        ORDER BY entered_at DESC, profile_id LIMIT 1
    """
    return db.row(sql, {"session": session})


def writes_claude_md(db: Database, profile: str) -> bool:
    """Tell whether the user wants the profile's CLAUDE.md written."""
    row = db.row("SELECT write_claude_md FROM profiles WHERE id = :id", {"id": profile})
    return bool(row and row["write_claude_md"])


def others_in_folder(db: Database, profile: str, folder: str) -> list[str]:
    """Return the other profiles with an open session in this folder."""
    sql = f"""
        SELECT DISTINCT profile_id FROM {_OPEN}
        WHERE folder = :folder AND profile_id <> :profile
    """
    found = db.rows(sql, {"folder": folder, "profile": profile})
    return [row["profile_id"] for row in found]


def other_sessions_in_folder(db: Database, session: str, folder: str) -> bool:
    """Tell whether another session is open in this folder."""
    sql = f"SELECT 1 FROM {_OPEN} WHERE folder = :folder AND session_id <> :session"
    return db.row(sql, {"folder": folder, "session": session}) is not None


# ---- read-only queries


def list_profiles(store: Listings) -> list[Entry]:
    """Return the profiles with their state (online or offline) and the time of last activity."""
    sql = f"""
        SELECT id, role,
          CASE WHEN EXISTS (SELECT 1 FROM {_OPEN} WHERE profile_id = profiles.id)
            THEN 'online' ELSE 'offline' END AS status,
          write_claude_md, created_at,
          (SELECT MAX(entered_at) FROM profile_sessions WHERE profile_id = profiles.id)
            AS entered_at,
          (SELECT MAX(last_active_at) FROM activity WHERE profile = profiles.id) AS last_active_at
        FROM profiles ORDER BY id
    """
    return store.rows(sql, {})


def profiles_of_sessions(store: Listings) -> dict[str, str]:
    """Return session -> profile for each open session that has a profile."""
    sql = f"SELECT session_id, profile_id FROM {_OPEN} ORDER BY entered_at"
    return {row["session_id"]: row["profile_id"] for row in store.rows(sql, {})}


def versions(store: Listings, profile: str, name: str = "") -> list[Entry]:
    """Return the versions of a profile's files, newest first."""
    sql = """
        SELECT id, name, sha256, length(text) AS characters, change_source, session_id, created_at
        FROM identity_versions WHERE profile_id = :profile AND (:name = '' OR name = :name)
        ORDER BY time_ns DESC, id DESC
    """
    return store.rows(sql, {"profile": profile, "name": name})


def version(store: Listings, profile: str, id: int) -> Entry | None:
    """Return name and text of one version, or None if its id is unknown."""
    sql = "SELECT name, text FROM identity_versions WHERE profile_id = :profile AND id = :id"
    return store.row(sql, {"profile": profile, "id": id})


def current_texts(store: Listings) -> list[Entry]:
    """Return the current version of every file of every profile."""
    sql = """
        SELECT profile_id, name, text FROM identity_versions AS this WHERE NOT EXISTS (
          SELECT 1 FROM identity_versions AS newer
          WHERE newer.profile_id = this.profile_id AND newer.name = this.name
            AND (newer.time_ns > this.time_ns
              OR (newer.time_ns = this.time_ns AND newer.id > this.id)))
    """
    return store.rows(sql, {})
