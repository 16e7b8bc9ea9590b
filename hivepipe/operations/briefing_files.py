"""Writes the parts of the briefings as files, so that no hook opens the database.

    <home>/context/*.txt    see hivepipe.hook.greeting; 0600, each replaced atomically

The files are updated when the database or the user's trusted files change. The files are also
updated once a minute, because no event tells that a session is stalled. Parts that are no longer
needed are removed.
"""

import logging
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path

from hivepipe.agents.briefing import words
from hivepipe.agents.briefing.words import MOST_NOTE_CHARS, Notes
from hivepipe.config import trust
from hivepipe.config.asking import NOTES_FOLDER
from hivepipe.db import briefing, profiles
from hivepipe.db.database import Database
from hivepipe.db.listings import Entry, Listings, listings
from hivepipe.errors import StoreError
from hivepipe.events.claude_code import CLAUDE_MD, IDENTITY_FILES
from hivepipe.files.change_stamp import stamp
from hivepipe.home import make_folders, project_of, read_small, write_small
from hivepipe.hook.greeting import PART_BYTES, PARTS_OF_A_KIND, lead_part, part_path, project_part
from hivepipe.operations.liveness import with_activity
from hivepipe.redact import redact_text
from hivepipe.times import stored_time

LOOK_EVERY_SECS = 2.0
REWRITE_SECS = 60.0
MOST_PARTS = 200  # maximum number of parts of one kind
MOST_PROJECTS = 50
RECENT_NS = 300 * 10**9

Signature = tuple[object, ...]

logger = logging.getLogger(__name__)

# The prefixes of our parts. Any other file in the folder belongs to the user.
_PARTS = ("project-", "left-", "last-", "task-", "goal-", "profile-", "lead-")
# Another program may write a row whose id cannot be in the name of a file; no hook reads its part.
_FILE_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}")


class BriefingFiles:
    """The briefing files of one home, which the writer updates between two batches of jobs."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._own_project = project_of(home)
        self._looked_at = self._written_at = float("-inf")
        self._seen: Signature = ()
        self._projects: list[str] = []

    def refresh_if_due(self, db: Database) -> None:
        """Update the briefing files if data changed or REWRITE_SECS have passed.

        The data are checked at most every LOOK_EVERY_SECS. Errors are logged, and the next check
        tries again.
        """
        now = time.monotonic()
        if now - self._looked_at < LOOK_EVERY_SECS:
            return
        self._looked_at = now
        try:
            seen = (*db.version(), *stamp(trust.path_of(self._home)))
            if seen == self._seen and now - self._written_at < REWRITE_SECS:
                return
            self.write(db.path)
        except (OSError, sqlite3.Error, StoreError) as error:
            logger.warning("briefings stay as they are: %s", error)
        else:
            self._seen, self._written_at = seen, now

    def write(self, database: Path) -> None:
        """Update every briefing file. Raise OSError or StoreError on failure."""
        with listings(database) as store:
            self._projects = briefing.projects(store, MOST_PROJECTS)
            if self._own_project not in (*self._projects, ""):  # the project has no session yet
                self._projects.append(self._own_project)
            parts = dict(self._parts(store))
        wanted = {
            part_path(self._home, name): text
            for name, text in parts.items()
            if text and _FILE_NAME.fullmatch(name)
        }
        folder = Path(self._home, "context")
        for path in folder.glob("*.txt"):
            if str(path) not in wanted and path.name.startswith(_PARTS):
                path.unlink(missing_ok=True)
        for name, text in wanted.items():
            if read_small(name, PART_BYTES) != text:
                make_folders(str(folder))
                write_small(name, text)

    def _parts(self, store: Listings) -> Iterator[tuple[str, str]]:
        tasks = briefing.open_tasks(store, MOST_PARTS)
        by_id = {task["id"]: task for task in tasks}
        by_session = {task["session_id"]: task for task in reversed(tasks)}
        for task in tasks:
            yield f"task-{task['id']}", words.task_part(task)
        for goal in briefing.open_goals(store, MOST_PARTS):
            own = by_id.get(goal["task_id"]) or by_session.get(goal["id"])
            yield f"goal-{goal['id']}", words.goal_part(own, goal["prompt"] or "")
        left = [task for task in tasks if task["session_status"] == "ended"]
        last = briefing.last_sessions(store, PARTS_OF_A_KIND, MOST_PARTS)
        for project in self._projects:
            yield project_part(project), words.notes_part(_notes_of(self._home, project))
            yield from _parts_of_a_kind("left", project, left, words.left_part)
            yield from _parts_of_a_kind("last", project, last, words.last_part)
        yield from _profile_parts(store)
        yield from _lead_parts(store, tasks)


def _parts_of_a_kind(
    kind: str, project: str, entries: Iterable[Entry], part: Callable[[Entry], str]
) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of a project's first PARTS_OF_A_KIND parts; line 1 is the entry's id."""
    own = (entry for entry in entries if entry["project"] == project)
    for number, entry in enumerate(islice(own, PARTS_OF_A_KIND)):
        yield project_part(project, kind, number), f"{entry['id']}\n{part(entry)}"


def _profile_parts(store: Listings) -> Iterator[tuple[str, str]]:
    texts = {
        (entry["profile_id"], entry["name"]): entry["text"]
        for entry in profiles.current_texts(store)
    }
    for profile in profiles.list_profiles(store)[:MOST_PARTS]:
        files = [
            Notes(name, texts[profile["id"], name])
            for name in IDENTITY_FILES
            if (profile["id"], name) in texts
            and not (name == CLAUDE_MD and profile["write_claude_md"])  # Claude Code reads it
        ]
        yield f"profile-{profile['id']}", words.profile_part(profile, files)


def _lead_parts(store: Listings, tasks: list[Entry]) -> Iterator[tuple[str, str]]:
    leads = [entry["id"] for entry in profiles.list_profiles(store) if entry["role"] == "lead"]
    if not leads:
        return
    since = stored_time(time.time_ns() - RECENT_NS)
    spawned = briefing.delegations(store, since, MOST_PARTS)
    sessions = _at_work(store, tasks)
    for swarm in {entry["swarm_id"] for entry in [*sessions, *spawned] if entry["swarm_id"]}:
        shown = [entry for entry in sessions if entry["swarm_id"] == swarm]
        agents = [entry for entry in spawned if entry["swarm_id"] == swarm]
        for lead in leads:
            others = [entry for entry in shown if entry["profile"] != lead]
            text = words.lead_part(others, agents)
            yield lead_part(lead, swarm), text


def _at_work(store: Listings, tasks: list[Entry]) -> list[Entry]:
    """Return all open sessions, each with its profile (or None).

    A session whose task is in `tasks` also has the task's id, text and progress.
    """
    by_id = {task["id"]: task for task in tasks}
    by_session = {task["session_id"]: task for task in reversed(tasks)}
    profile_by_session = profiles.profiles_of_sessions(store)
    found = []
    for entry in with_activity(store, store.sessions(with_ended=False)):
        task = by_id.get(entry["task_id"]) or by_session.get(entry["id"])
        known = {"profile": entry["profile"] or profile_by_session.get(entry["id"])}
        if task:
            known |= {"task_id": task["id"], "text": task["text"], "progress": task["progress"]}
        found.append({**entry, **known})
    return found


def _notes_of(home: str, project: str) -> Iterator[Notes]:
    """Yield the trusted copies of a project's notes, without reading the work tree."""
    for name, file in trust.trusted_files(home, project).items():
        if name.startswith(f"{NOTES_FOLDER}/") and file.text.strip():
            yield Notes(name, redact_text(file.text[: 4 * MOST_NOTE_CHARS]))
