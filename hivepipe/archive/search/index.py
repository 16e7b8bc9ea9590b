"""The search index: the words of each archive line. The index stores no readable text.

    archives   one row per archive, and how far it is indexed (bytes of the plain lines)
    passages   one row per line with text: offset, time, author, tool, whether it is a call
               of hivepipe or its result; its id is the rowid in the next two tables
    pieces     contentless FTS5 table of trigrams, which finds any part of a text
    words      contentless FTS5 table of words, which finds whole words and prefixes
    calls      id and tool of each tool call, because its later result names only the id
    skipped    one row per line that could not be indexed, and why
    folders    folders whose archives are all indexed, and when they last changed

Everything is derived from the archives. If the file is deleted, the next search rebuilds it.
"""

import secrets
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from hivepipe.archive.search.index_file import remove_index
from hivepipe.archive.search.own_calls import ToolUses
from hivepipe.archive.search.passages import passage_of
from hivepipe.archive.search.query import Filters, Term, folded, quoted
from hivepipe.errors import SearchError
from hivepipe.events.claude_code import clean
from hivepipe.files.sqlite_file import (
    closing_on_error,
    open_to_write,
    transaction,
    trouble_of_index,
)

VERSION = 9
BUSY_TIMEOUT_SECS = 30.0
LINES_PER_COMMIT = 5000
LONGEST_REASON = 200
TRIGRAM = 3

_SCHEMA = f"""
CREATE TABLE archives (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, session_id TEXT NOT NULL, agent TEXT NOT NULL,
  project TEXT NOT NULL, bytes INTEGER NOT NULL, edition INTEGER NOT NULL);
CREATE TABLE passages (
  id INTEGER PRIMARY KEY, archive INTEGER NOT NULL, offset INTEGER NOT NULL, time TEXT NOT NULL,
  who TEXT NOT NULL, tool TEXT NOT NULL, is_own INTEGER NOT NULL);
CREATE TABLE calls (
  archive INTEGER NOT NULL, id TEXT NOT NULL, tool TEXT NOT NULL, is_own INTEGER NOT NULL,
  PRIMARY KEY (archive, id)) WITHOUT ROWID;
CREATE VIRTUAL TABLE pieces USING fts5(
  text, content='', columnsize=0, tokenize="trigram case_sensitive 1");
CREATE VIRTUAL TABLE words USING fts5(
  text, content='', columnsize=0, tokenize="unicode61 remove_diacritics 0 tokenchars '_'");
CREATE TABLE skipped (
  archive INTEGER NOT NULL, offset INTEGER NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (archive, offset));
CREATE TABLE folders (
  name TEXT PRIMARY KEY, changed_ns INTEGER NOT NULL, keys INTEGER NOT NULL) WITHOUT ROWID;
PRAGMA user_version={VERSION};
"""


@dataclass(frozen=True, slots=True)
class Archived:
    """An archive to index: `size` bytes, uncompressed; `lines_from` yields (offset, line)."""

    key: str
    session: str
    agent: str
    project: str
    size: int
    lines_from: Callable[[int], Iterable[tuple[int, bytes]]]
    began: str = ""
    edition: int = 0  # how often existing lines were rewritten


@dataclass(frozen=True, slots=True)
class Hit:
    """One line that was found; `offset` is its byte position in the uncompressed lines."""

    key: str
    session: str
    agent: str
    project: str
    offset: int
    time: str
    who: str
    tool: str = ""  # the tool of the call or of the result in the line
    is_own: int = 0  # 1 if the line is a call of hivepipe or its result


class FolderState(NamedTuple):
    """The time of a folder's last change (ns since 1970), and a checksum of its archives' keys."""

    changed_ns: int
    keys: int


class SearchIndex:
    """An open search index, whose file several processes may use."""

    def __init__(self, path: Path) -> None:
        """Open or create the index. Raises SearchError if it is unusable or SQLite has no FTS5."""
        self._path = path
        self._begin()

    def _begin(self) -> None:
        try:
            self._open()
            with closing_on_error(self._db):
                is_usable = self._version() in (0, VERSION)
            if not is_usable:  # another version made the file, which can be rebuilt
                self._db.close()
                remove_index(self._path)
                self._open()
            with closing_on_error(self._db):
                self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def _version(self) -> int:
        return int(self._db.execute("PRAGMA user_version").fetchone()[0])

    def _prepare(self) -> None:
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        with self._transaction():
            if not self._version():
                for statement in _SCHEMA.split(";\n"):
                    self._db.execute(statement)
                # A random id distinguishes a rebuilt index from the old one.
                self._db.execute(f"PRAGMA application_id={secrets.randbits(31)}")
        self._db.execute("CREATE VIRTUAL TABLE temp.trigrams USING fts5vocab(main, pieces, row)")

    def _unusable(self, error: OSError | sqlite3.Error) -> SearchError:
        return SearchError(trouble_of_index(self._path, error))

    def _open(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._db = open_to_write(self._path, BUSY_TIMEOUT_SECS)

    def close(self) -> None:
        self._db.close()

    # ---- indexing

    def has_another_edition(self, archived: Archived) -> bool:
        """Tell whether the lines of an archive were replaced after they were indexed."""
        sql = "SELECT 1 FROM archives WHERE key = :key AND edition != :edition"
        return bool(self._ask(sql, {"key": archived.key, "edition": archived.edition}))

    def folders(self) -> dict[str, FolderState]:
        """Return folder -> the state in which all archives of the folder were indexed."""
        rows = self._ask("SELECT name, changed_ns, keys FROM folders", {})
        return {name: FolderState(changed_ns, keys) for name, changed_ns, keys in rows}

    def keep_folders(self, found: dict[str, FolderState]) -> None:
        """Record that all archives of the folders `found` are indexed."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO folders VALUES (?, ?, ?)",
                ((name, *state) for name, state in found.items()),
            )

    def keys_of_summaries(self) -> set[str]:
        return {key for (key,) in self._ask("SELECT key FROM archives WHERE instr(key, '#')", {})}

    def state(self) -> tuple[int, ...]:
        """Return a value that changes when lines are indexed: a later search may then find more."""
        sql = "SELECT max(id) FROM passages"
        return tuple(int(self._ask(each, {})[0][0] or 0) for each in ("PRAGMA application_id", sql))

    def start_empty(self) -> None:
        """Replace the file with an empty index, because FTS5 keeps deleted text for a while."""
        self._db.close()
        remove_index(self._path)
        self._begin()

    def missing_bytes(self, archived: Archived) -> int:
        """Return the number of bytes of an archive that are not indexed yet."""
        return archived.size - self._indexed_bytes(archived.key)

    def catch_up(self, archived: Archived, should_stop: Callable[[], bool] = lambda: False) -> int:
        """Index the new lines of an archive; return the number of passages.

        After a kill or a stop, committed lines stay indexed and the next call indexes the rest.
        Raises SearchError, for instance if the disk is full, and OSError if the lines cannot be
        read.
        """
        if not self.missing_bytes(archived):
            return 0
        added, lines = 0, iter(archived.lines_from(self._indexed_bytes(archived.key)))
        while True:
            with self._transaction():
                row = self._claim(archived)
                at_once = self._add(row, lines)
            added += at_once[0]
            if at_once[1] < LINES_PER_COMMIT or should_stop():
                return added

    def _claim(self, archived: Archived) -> int:
        sql = """
            INSERT INTO archives (key, session_id, agent, project, edition, bytes)
            VALUES (?, ?, ?, ?, ?, 0)
            ON CONFLICT (key) DO UPDATE SET project = excluded.project RETURNING id
        """
        who = (archived.key, archived.session, archived.agent, archived.project)
        return int(self._db.execute(sql, (*who, archived.edition)).fetchone()[0])

    def _add(self, archive: int, lines: Iterator[tuple[int, bytes]]) -> tuple[int, int]:
        """Index up to LINES_PER_COMMIT lines; return the numbers of passages and of lines read.

        Lines that another process has indexed meanwhile are skipped.
        """
        sql = "SELECT bytes FROM archives WHERE id = ?"
        indexed = self._db.execute(sql, (archive,)).fetchone()[0]
        added = read = 0
        for offset, raw in lines:
            read += 1
            if offset >= indexed:
                added += self._add_line(archive, offset, raw)
                indexed = offset + len(raw)
            if read == LINES_PER_COMMIT:
                break
        self._db.execute("UPDATE archives SET bytes = ? WHERE id = ?", (indexed, archive))
        return added, read

    def _add_line(self, archive: int, offset: int, raw: bytes) -> int:
        try:
            passage = passage_of(raw)
        except Exception as error:  # noqa: BLE001  a bad line must not stop the others
            self._skip(archive, offset, str(error) or type(error).__name__)
            return 0
        if passage is None:
            return 0
        tool, is_own = self._store_calls(archive, passage.uses)
        row = self._db.execute(
            "INSERT INTO passages (archive, offset, time, who, tool, is_own)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (archive, offset, passage.time, passage.who, tool, is_own),
        ).lastrowid
        text = folded(passage.words)
        self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, text))
        # The newlines make the last two characters start a trigram, too. A term of one or two
        # characters is found as the start of a trigram.
        self._db.execute("INSERT INTO pieces (rowid, text) VALUES (?, ?)", (row, f"{text}\n\n"))
        return 1

    def _store_calls(self, archive: int, uses: ToolUses) -> tuple[str, bool]:
        """Store a line's calls; return its first tool, and whether it has only calls of hivepipe.

        The calls are stored, because the results in later lines name only the calls' ids.
        """
        note = "INSERT OR IGNORE INTO calls (archive, id, tool, is_own) VALUES (?, ?, ?, ?)"
        rows = [(archive, call, tool, call in uses.own) for call, tool in uses.begun]
        self._db.executemany(note, rows)
        known = "SELECT tool, is_own FROM calls WHERE archive = ? AND id = ?"
        answered = [
            self._db.execute(known, (archive, call)).fetchone() or ("", False)
            for call in uses.answered
        ]
        tools = (tool for _, tool in uses.begun), (tool for tool, _ in answered)
        is_own = not uses.is_mixed and all(is_own for _, is_own in answered)
        return next(filter(None, chain(*tools)), ""), is_own

    def _skip(self, archive: int, offset: int, reason: str) -> None:
        sql = "INSERT OR REPLACE INTO skipped (archive, offset, reason) VALUES (?, ?, ?)"
        self._db.execute(sql, (archive, offset, clean(reason)[:LONGEST_REASON]))

    def _indexed_bytes(self, key: str) -> int:
        rows = self._ask("SELECT bytes FROM archives WHERE key = :key", {"key": key})
        return int(rows[0][0]) if rows else 0

    # ---- searching

    def count(self, terms: list[Term], filters: Filters) -> int:
        """Return the number of matching lines."""
        matching = self._matching(terms)
        if not matching.sql:
            return 0
        joined = f"{_JOINED} WHERE true {filters.sql}" if filters.sql else ""
        sql = f"SELECT count(*) FROM ({matching.sql}) AS found {joined}"
        return int(self._ask(sql, {**matching.values, **filters.values})[0][0])

    def facets(self, terms: list[Term], filters: Filters) -> dict[str, Counter[str]]:
        """Return the number of matching lines by local day, project, agent, role and tool.

        The day "" counts the lines without a time.
        """
        facets: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
        matching = self._matching(terms)
        if not matching.sql:
            return facets
        # Projects and agents are looked up afterwards: sorting by them takes twice as long.
        sql = f"""
            SELECT p.archive, date(p.time, 'localtime'), p.who, p.tool, count(*)
            FROM ({matching.sql}) AS found {_JOINED if filters.sql else _PASSAGES}
            WHERE true {filters.sql}
            GROUP BY 1, 2, 3, 4
        """
        counted = self._ask(sql, {**matching.values, **filters.values})
        known = self._ask("SELECT id, project, agent FROM archives", {})
        about = {archive: (project, agent) for archive, project, agent in known}
        for archive, day, who, tool, number in counted:
            for name, value in zip(FACETS, (day or "", *about[archive], who, tool), strict=True):
                facets[name][value] += number
        return facets

    def find(self, terms: list[Term], filters: Filters, limit: int) -> list[Hit]:
        """Return lines that match all terms, newest first; calls of hivepipe come last."""
        matching = self._matching(terms)
        if not matching.sql:
            return []
        sql = f"""
            SELECT a.key, a.session_id, a.agent, a.project, p.offset, p.time, p.who, p.tool,
              p.is_own
            FROM ({matching.sql}) AS found {_JOINED} WHERE true {filters.sql}
            ORDER BY p.is_own, p.time DESC, p.id DESC LIMIT :limit
        """
        values = {**matching.values, "limit": limit, **filters.values}
        return [Hit(*row) for row in self._ask(sql, values)]

    def _matching(self, terms: list[Term]) -> "_Matching":
        """Return the query for the rowids of passages that match all terms."""
        words = [
            quoted(each.text) + "*" * (not each.ends_word) for each in terms if each.is_of_words
        ]
        pieces = [
            self._piece(each.text) for each in terms if not (each.is_of_words and each.is_one_word)
        ]
        if not all(pieces):
            return _Matching("", {})
        queries: dict[str, object] = {"words": " AND ".join(words), "pieces": " AND ".join(pieces)}
        wanted = {table: match for table, match in queries.items() if match}
        sql = " INTERSECT ".join(
            f"SELECT rowid FROM {table} WHERE {table} MATCH :{table}" for table in wanted
        )
        return _Matching(sql, wanted)

    def _piece(self, text: str) -> str:
        """Return the FTS5 condition that finds `text`, or "" if no indexed line has it."""
        if len(text) >= TRIGRAM:
            return quoted(text)
        sql = "SELECT term FROM temp.trigrams WHERE term >= :first AND term < :behind"
        rows = self._ask(sql, {"first": text, "behind": f"{text}\U0010ffff"})
        return f"({' OR '.join(quoted(term) for (term,) in rows)})" if rows else ""

    def _ask(self, sql: str, values: dict[str, object]) -> list[Any]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Run the block in one transaction. Raises SearchError if SQLite fails."""
        try:
            with transaction(self._db):
                yield
        except sqlite3.Error as error:
            raise self._unusable(error) from error


FACETS = ("day", "project", "agent", "role", "tool")


class _Matching(NamedTuple):
    sql: str
    values: dict[str, object]


_PASSAGES = "JOIN passages p ON p.id = found.rowid"
_JOINED = f"{_PASSAGES} JOIN archives a ON a.id = p.archive"
