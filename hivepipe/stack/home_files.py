"""The names of the files that hivepipe makes in a home. Other files belong to the user and stay."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

from hivepipe import git
from hivepipe.errors import TreeError
from hivepipe.home import read_small
from hivepipe.stack.processes import PROCESSES

_LOGS = ("supervisord", "forwarder", "hook-errors", "cleanup", "security-audit")
_PROCESS = "|".join((*_LOGS, *(each.name for each in PROCESSES)))
_DATABASE = r"hive\.db(-wal|-shm|-journal)?"
_NAMES = (
    r"\.gitignore",
    _DATABASE,
    r"(search|memory|manifest)\.db(-wal|-shm|-journal)?",
    r"backups/hive-before-\d+-\d+\.db",
    r"\.(backup|restore)-\w{8}/.+",  # a killed process left it
    rf"logs/(({_PROCESS})\.log(\.\d+)?|(deletions|actions)\.log(\.1)?)",
    r"appendonly\.aof|appendonlydir(\.\d{19})?/[\w.-]+|dump\.rdb|temp-[\w.-]+\.(aof|rdb)|redis\.lock",
    r"kernel|stay|moving|environment|lost-events|notice|forgotten|hives|memory-server|(spool/)?call-notes(\.\d+)?|intake\.slot",
    r"followed-folders|claude-folders|guard-mode|shared-root-silent|status-line\.json|uplink\.json",
    r"redaction\.key|hook-settings\.json|trusted\.json|\.active_session|sessions/\.session_\d+",
    r"spool/(bad/)?\d+_\d+\.(json|raw)(\.tmp)?(\.reason)?",
    r"instances/\d+(\.checkpoint|\.settings)?",
    r"context/(project|left|last|task|goal|profile|lead)-[\w.-]+\.txt",
    r"recall/([\w.-]+\.txt|told-[0-9a-f]+|wanted)",
    r"tasks/(cancelled|sessions|told)/[\w.-]+",
    r"identity/\d{20}_\d+_[^/]+",
)
_OURS = re.compile(rf"({'|'.join(_NAMES)})(\.\d+)?(\.tmp)?", re.ASCII)


def why_not_ours(home: str, name: str) -> str:
    """Return why the file `name` (relative to the home) must stay, or "" if hivepipe made it."""
    path = Path(home, name)
    if path.is_symlink() or not path.is_file():
        return "it is a link, or not a file"
    if not _OURS.fullmatch(name) and not _is_of_named_instance(home, name):
        return "hivepipe makes no file of this name"
    if name == ".gitignore" and not has_own_ignore(home):
        return "it is not hivepipe's"
    if re.fullmatch(_DATABASE, name) and not _is_our_database(Path(home, "hive.db")):
        return "it is not hivepipe's database"
    return ""


def has_own_ignore(folder: str) -> bool:
    """Tell whether the folder's `.gitignore` ignores all files, and git does not track it."""
    if read_small(f"{folder}/.gitignore") != "*\n":
        return False
    try:
        return not git.tracked_files(folder, ".gitignore")
    except TreeError:  # git cannot tell: leave the file to the user
        return False


def _is_of_named_instance(home: str, name: str) -> bool:
    """Tell whether a file belongs to a Claude Code that was started with HIVEPIPE_INSTANCE_ID."""
    found = re.fullmatch(r"instances/([\w.-]+?)(\.checkpoint|\.settings)?", name, re.ASCII)
    if not found:
        return False
    return read_small(f"{home}/instances/{found[1]}").startswith(f"id={found[1]}\n")


def _is_our_database(path: Path) -> bool:
    """Tell whether a database has hivepipe's schema, or is empty because its writer was killed."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
            return not names or "schema_migrations" in names
    except sqlite3.Error:  # the database is damaged: the user may want to recover data from it
        return False
