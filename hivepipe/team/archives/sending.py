"""Send the archives of one home: each segment that the server's list does not contain.

    announce the object -> write it -> list it

The list is the state: after a crash, sending continues at the first segment that is not listed.
`leftovers` deletes an object that was announced but not listed within an hour.
"""

import zlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import quote

import orjson

from hivepipe.archive.archive_files import ArchiveFiles
from hivepipe.archive.catalog import Catalog
from hivepipe.archive.found_values import Learning
from hivepipe.archive.index import Entry
from hivepipe.db import changes as captured
from hivepipe.db.listings import Listings, listings
from hivepipe.db.location import database_path
from hivepipe.errors import TeamAwayError, TeamDataError, TeamError
from hivepipe.files.manifest import Manifest
from hivepipe.home import kept_folder
from hivepipe.team.archives import leftovers, place
from hivepipe.team.archives.cipher import Cipher, kept_cipher
from hivepipe.team.archives.cutting import (
    SEGMENT_BYTES,
    Point,
    Segment,
    checksum_from,
    place_of,
    segments,
)
from hivepipe.team.archives.stores import Bucket, bucket_of
from hivepipe.team.connection import Connection, one, translated
from hivepipe.team.policy import Policies, includes, shared_level
from hivepipe.team.project_names import name_of_session
from hivepipe.team.retention import retention_of
from hivepipe.text.plurals import counted

Head = dict[str, Any]  # the description of an archive, as `add_segment` takes it


class Listed(NamedTuple):
    """An archive's last segment on the server, and the CRC of all bytes before that segment."""

    project: str
    edition: int
    number: int
    first: int
    last: int
    crc: int
    crc_before: int
    cipher: str
    object: str

    @property
    def next(self) -> Point:
        """Return the start of the next segment, which replaces the last one unless that is full."""
        if self.last - self.first < SEGMENT_BYTES:
            return Point(self.number, self.first, self.crc_before)
        return Point(self.number + 1, self.last, self.crc)

    def is_newer(self, edition: int, length: int) -> bool:
        """Tell whether the server has more lines than this machine, as after a local restore."""
        return edition < self.edition or (edition == self.edition and length < self.last)


class Sent(NamedTuple):
    """The result of a pass over the archives of a home."""

    segments: int = 0
    bytes: int = 0
    dropped: int = 0  # archives that are no longer shared, or that changed
    deleted: int = 0  # deleted objects
    left_out: int = 0  # archives whose project, and so its policy, is unknown


class Pass:
    """One pass over the archives of a home; the caller closes the connection."""

    def __init__(self, connection: Connection, home: str, share: Policies) -> None:
        """Read the server's list. Raise TeamError, for instance if the home is unknown."""
        self._connection = connection
        self._catalog = Catalog(kept_folder(home), Manifest(home))
        self._path = Path(database_path(home))
        self._share = share
        with listings(self._path) as store:
            self._home = captured.home_of(store).id
        answer: dict[str, Any] = self._ask("SELECT hivepipe.listed_archives(%s)", self._home)
        self._number, self._member = answer["home"], answer["member"]
        self._policies: Policies = answer["policies"]
        self._version: int = answer["policy_version"]
        self._forgotten = frozenset(answer["forgotten"])
        self._place = place.parse(answer["store"])
        self._retention = retention_of(connection)
        self._listed: Mapping[str, Listed] = {
            name: Listed(**fields) for name, fields in answer["archives"].items()
        }
        self._segments = self._bytes = self._dropped = self._left_out = 0
        self._failed: list[str] = []  # archives that could not be sent

    @property
    def has_work(self) -> bool:
        """Tell whether the team keeps archives, or its server still lists some of this home."""
        return self._place.text != place.NONE or bool(self._listed)

    def run(self) -> Sent:
        """Drop unshared archives from the server, send missing segments, delete unlisted objects.

        Return how many. Raise TeamError at the end if an archive could not be sent.
        """
        self._drop([n for n, each in self._listed.items() if not self._is_shared(each.project)])
        if self._place.text == place.NONE:
            return Sent(dropped=self._dropped)
        cipher = kept_cipher()
        with listings(self._path) as store:
            for entry, project in self._shared(store):
                self._try_to_send(entry, project, cipher)
        deleted = leftovers.delete_now(self._connection).get(leftovers.DELETED, 0)
        if self._failed:
            number = counted(len(self._failed), "archive")
            raise TeamError(f"{number} cannot be sent, such as {self._failed[0]}")
        return Sent(self._segments, self._bytes, self._dropped, deleted, self._left_out)

    # ---- selection

    def _shared(self, store: Listings) -> Iterator[tuple[Entry, str]]:
        """Yield the shared archives with the names of their projects."""
        for _, entry in sorted(self._catalog.index.entries().items()):
            project = name_of_session(store, entry["session_id"])
            if entry["session_id"] in self._forgotten:
                continue
            if project is None:
                self._left_out += 1
            elif self._is_shared(project) and self._is_kept(store, entry):
                yield entry, project

    def _is_shared(self, project: str) -> bool:
        return includes(shared_level(project, self._share, self._policies), "everything")

    def _is_kept(self, store: Listings, entry: Entry) -> bool:
        """Tell whether retention keeps an archive, by its start or its session's last update."""
        if self._retention.keeps(entry["started_at"]):
            return True
        sql = "SELECT updated_at FROM sessions WHERE id = :id AND updated_at >= :since"
        values = {"id": entry["session_id"], "since": self._retention.dropped_before}
        return bool(store.rows(sql, values))

    # ---- one archive

    def _try_to_send(self, entry: Entry, project: str, cipher: Cipher | None) -> None:
        """Send an archive; if it is damaged or rejected, the other archives are still sent."""
        try:
            with self._catalog.opened(entry) as kept:
                self._send_archive(kept, entry, project, cipher)
        except FileNotFoundError:
            pass
        except (OSError, EOFError, zlib.error, TeamDataError) as error:
            self._failed.append(f"{entry['path']}: {error}")

    def _send_archive(
        self, kept: ArchiveFiles, entry: Entry, project: str, cipher: Cipher | None
    ) -> None:
        offsets = kept.offsets()
        if offsets is None or not offsets.length:
            return
        edition, length, crc = Learning.of(kept).edition, offsets.length, offsets.checksum
        known = self._known(kept.name.path, project, cipher)
        if known and (known.is_newer(edition, length) or (known.last, known.crc) == (length, crc)):
            return
        head = {**entry, "name": kept.name.path, "project": project, "edition": edition}
        with kept.open_to_read() as lines:
            start = self._start(lines, known, head, length, crc)
            if start is None:
                return
            where = place_of(self._number, kept.name.path)
            for segment in segments(lines, start, length, cipher, where):
                self._send_segment(head, segment)

    def _known(self, name: str, project: str, cipher: Cipher | None) -> Listed | None:
        """Return the server's entry of an archive, or None.

        If project, key or place differ from the entry, the archive is first deleted on the server.
        """
        known = self._listed.get(name)
        wanted = (project, cipher.name if cipher else "", bool(self._place.bucket))
        if known and (known.project, known.cipher, bool(known.object)) != wanted:
            self._drop([name])
            return None
        return known

    def _start(
        self, lines: BinaryIO, known: Listed | None, head: Head, length: int, crc: int
    ) -> Point | None:
        """Return the point from which to send, or None if another process changes the archive now.

        If lines that were sent have changed, delete them on the server and send all lines again.
        """
        is_same = known is not None and head["edition"] == known.edition
        if known and is_same and checksum_from(lines, known.next, length) == crc:
            return known.next
        if checksum_from(lines, Point(), length) != crc:
            return None
        if known:
            self._drop([head["name"]])
        return Point()

    def _send_segment(self, head: Head, segment: Segment) -> None:
        name = ""
        if self._place.bucket:
            bucket = self._bucket  # without the store's key, no object is announced
            name = f"{quote(self._member, safe='')}/{self._number}/{segment.hash}"
            sql = "SELECT hivepipe.announce_object(%s, %s, %s)"
            self._ask(sql, self._home, head["session_id"], name)
            bucket.put(name, segment.content)
        row = {**segment._asdict(), "size": len(segment.content), "object": name}
        del row["content"]
        is_listed = self._ask(
            "SELECT hivepipe.add_segment(%s, %s::jsonb, %s::jsonb, %s, %s)",
            *(self._home, orjson.dumps(head).decode(), orjson.dumps(row).decode()),
            *(None if name else segment.content, self._version),
        )
        if not is_listed:
            raise TeamAwayError("the policies or the list of archives changed meanwhile")
        self._segments += 1
        self._bytes += len(segment.content)

    @cached_property
    def _bucket(self) -> Bucket:
        """Return the team's bucket, opened at first use, because only sending needs its key."""
        return bucket_of(self._connection, self._place)

    def _drop(self, names: list[str]) -> None:
        if names:
            sql = "SELECT hivepipe.drop_archives(%s, %s)"
            self._dropped += self._ask(sql, self._home, names)

    def _ask(self, sql: str, *values: Any) -> Any:
        with translated():
            return one(self._connection, sql, *values)
