"""Send the rows of one home that the server does not have yet, in batches.

The server's mark is the version of the last change that the server has. The transaction that stores
a batch also stores the mark, and the next batch begins at the mark. So no special case is needed if
a batch was sent twice, an uplink was killed, or a restored server has lost a batch.
"""

import json
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

from hivepipe.db import changes as captured
from hivepipe.db.changes import Change
from hivepipe.db.database import Database, open_database
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.migrations import MIGRATIONS
from hivepipe.errors import TeamDataError, TeamError
from hivepipe.team import connection as server
from hivepipe.team.address import Address
from hivepipe.team.batches import Batch, Sharing, batch_of
from hivepipe.team.policy import Policies, shared_level
from hivepipe.team.project_names import name_of_session
from hivepipe.team.retention import Retention, apply_retention
from hivepipe.team.shared_rows import sent_form

ROWS_AT_ONCE = 200
_SMALL_CACHE = "PRAGMA cache_size=-256"  # in KiB; the default is 2 MB for each of two connections
# Only the last of several batches waits for the server's disk, which then has all of them.
_SHIP = """
    SELECT hivepipe.ship($1, $2, $3, $4, $5, $6, $7), set_config('synchronous_commit',
      CASE WHEN $8 THEN 'off' ELSE current_setting('synchronous_commit') END, true)
"""

logger = logging.getLogger("hivepipe.uplink")

Meanwhile = Callable[[], Batch | None]


class Greeting(NamedTuple):
    """The server's answer to `open_home`."""

    mark: int
    member: str
    machine: str
    policies: Policies
    policy_version: int
    schema: str


class Shipment(AbstractContextManager["Shipment"]):
    """A connection between one home and the server; `share` holds the user's policies."""

    def __init__(self, home: str, address: Address, share: Policies) -> None:
        """Connect, start the change capture, and read the server's mark.

        Changes of a capture that runs already are collected first, so that the log does not grow
        while the server is away. The database is closed while connecting, because it may be
        deleted meanwhile. Raise StoreError or TeamError, such as TeamAwayError.
        """
        self._share = share
        self._months: set[str] = set()
        self._sharings: dict[str, Sharing] = {}
        self._next: Batch | None = None
        self._is_on_disk = True
        self._retention = Retention()
        self.left_out = 0
        self.sent = 0
        _collect_in(home)
        with ExitStack() as opened:
            self._connection = opened.enter_context(closing(server.connect(address)))
            self._db = opened.enter_context(open_database(home))
            captured.start_capture(self._db)
            self._store = opened.enter_context(listings(database_path(home)))
            self._db.execute(_SMALL_CACHE, {})
            self._store.rows(_SMALL_CACHE, {})
            self.greet()
            self._opened = opened.pop_all()

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def greet(self) -> Greeting:
        """Read and return the server's mark and policies; resend all rows if these changed.

        All rows are also sent again if their columns changed.
        The server also deletes the next part of the rows that are older than its retention. If this
        home is older than the mark, because it was restored, send the rows that the server lacks.
        """
        _collect(self._db)
        home = captured.home_of(self._store)
        with server.translated():
            answer = server.one(
                self._connection,
                "SELECT hivepipe.open_home(%s, %s)",
                home.id,
                version("hivepipe"),
            )
        self._id, self._next, self._is_outdated = home.id, None, False
        self.greeting = Greeting(**answer)
        self._retention = apply_retention(self._connection)
        self.mark = self.greeting.mark
        self._keep_terms(home)
        if captured.newest_version(self._store) < self.mark:
            self._send_what_is_absent()
        return self.greeting

    def _keep_terms(self, home: captured.Home) -> None:
        """Start a pass over all rows if policies or columns changed, here or on the server.

        A pass sends all rows again. At its end the server deletes the rows that were not sent. A
        server that was restored to a time before the last pass may have such rows, so it gets
        another pass.
        """
        terms = json.dumps(
            {
                "share": dict(sorted(self._share.items())),
                "policies": dict(sorted(self.greeting.policies.items())),
                "server": self.greeting.schema,
                "store": MIGRATIONS[-1][0],
                "rows": sent_form(),
                **({"months_added": added} if (added := self._retention.added) else {}),
            }
        )
        is_swept = home.sweep_below is None
        is_new = home.terms != terms or (is_swept and self.mark < (home.sweep_at or 0))
        if not is_new and (is_swept or home.sweep_at is not None):
            return
        if is_new:
            captured.start_pass(self._db, terms)
        captured.mark_all_changed(self._db)

    def ship_next(self) -> bool:
        """Send the next batch or let the server sweep; return False if the server has everything.

        The next batch is read while the server stores this batch. Raise TeamError on failure.
        """
        batch = self._next or self._read(self.mark)
        self._next = None
        if not batch and not self._is_on_disk:
            batch = Batch(self.mark)
        if not batch:
            return self._sweep()
        following = self._send(batch, meanwhile=partial(self._read, batch.upto))
        if self._is_outdated:
            self.greet()
        elif self.mark == batch.upto:
            self._next = following
        self.sent += len(batch.items)
        return True

    def lag(self) -> captured.Lag:
        """Return how many rows the server does not have yet, and the age of the oldest such row."""
        return captured.lag_behind(self._store, self.mark)

    def _read(self, since: int) -> Batch | None:
        """Read the next batch of changes; return None if there are no changes."""
        _collect(self._db)
        changes = captured.changes_since(self._store, since, ROWS_AT_ONCE)
        if not changes:
            return None
        self._follow_projects(changes)
        self._sharings.clear()
        return self._batch(changes)

    def _batch(self, changes: list[Change]) -> Batch:
        batch = batch_of(self._store, changes, self._sharing_of)
        is_whole = len(changes) < ROWS_AT_ONCE and batch.upto == changes[-1].version
        return self._retention.without_dropped(batch._replace(is_followed=not is_whole))

    def _send(
        self, batch: Batch, *, if_absent: bool = False, meanwhile: Meanwhile = lambda: None
    ) -> Batch | None:
        """Send a batch; return the next batch, which is read while the server stores this batch.

        A row that the server cannot store is left out. With `if_absent`, existing rows are kept.
        Return None if the batch was halved. Raise TeamError after any other error.
        """
        try:
            return self._call(batch, if_absent, meanwhile)
        except TeamDataError as error:
            if len(batch.items) > 1:
                for half in batch.halves():
                    self._send(half, if_absent=if_absent)
                return None
            if not batch.items:
                raise TeamError(f"the server rejects a batch: {error}") from None
            logger.error("a row of %s is skipped: %s", batch.items[0].change.table, error)
            self.left_out += 1
            return self._call(Batch(batch.upto), if_absent)

    def _call(
        self, batch: Batch, if_absent: bool, meanwhile: Meanwhile = lambda: None
    ) -> Batch | None:
        """Send a batch with the SQL function `ship`; return the result of `meanwhile`.

        The server stores nothing if its policies or its mark differ from those last read; the next
        `greet` reads them. Raise TeamError on failure.
        """
        with server.translated():
            for month in sorted(batch.months() - self._months):
                self._connection.execute("SELECT hivepipe.ensure_month(%s::date)", (month,))
                self._months.add(month)
            values = (
                self._id,
                self.mark,
                self.mark if if_absent else batch.upto,
                batch.rows(),
                batch.gone(),
                if_absent,
                self.greeting.policy_version,
                batch.is_followed,
            )
            answer, following = server.one_meanwhile(self._connection, _SHIP, values, meanwhile)
        self._is_on_disk = not batch.is_followed
        if answer["policy_version"] != self.greeting.policy_version or answer["mark"] is None:
            self._is_outdated = True
        else:
            self.mark = answer["mark"]
        return following

    def _sweep(self) -> bool:
        """Delete on the server some rows that a pass did not resend; return False if none left."""
        home = captured.home_of(self._store)
        if home.sweep_below is None or home.sweep_at is None or self.mark < home.sweep_at:
            return False
        with server.translated():
            sql = "SELECT hivepipe.sweep(%s, %s)"
            if server.one(self._connection, sql, home.id, home.sweep_below):
                return True
        captured.end_pass(self._db)
        return False

    def _send_what_is_absent(self) -> None:
        """Send a restored home's rows that the server lacks; newer rows on the server stay."""
        logger.warning("this home is older than the team's rows of it: a backup was restored")
        at = 0
        while changes := captured.changes_since(self._store, at, ROWS_AT_ONCE):
            batch = self._batch(changes)
            self._send(batch, if_absent=True)
            at = batch.upto
        captured.raise_version(self._db, self.mark)

    # ---- projects

    def _follow_projects(self, changes: list[Change]) -> None:
        """If a session's project has a new name, store the name and mark all rows of the session.

        Rows that are marked as changed are sent again.
        """
        for session in [each.key for each in changes if each.table == "sessions"]:
            known = captured.sent_project(self._store, session)
            name = name_of_session(self._store, session)
            if name is not None and (known is None or known.name != name):
                with self._db.transaction():
                    captured.keep_sent_project(self._db, session, name)
                    if known is not None:
                        captured.mark_session_changed(self._db, session)

    def _sharing_of(self, session: str) -> Sharing:
        if session not in self._sharings:
            self._sharings[session] = self._found_sharing(session)
        return self._sharings[session]

    def _found_sharing(self, session: str) -> Sharing:
        """Return a session's sharing; nothing is shared while the session's project is unknown."""
        known = captured.sent_project(self._store, session)
        name = name_of_session(self._store, session) if session else ""
        if name is None:
            if known is None:
                with self._db.transaction():
                    captured.keep_sent_project(self._db, session, None)
            return Sharing("nothing", None)
        level = shared_level(name, self._share, self.greeting.policies)
        return Sharing(level, name, known is not None and known.has_moved)


def _collect_in(home: str) -> None:
    """Collect the logged changes of a home that already captures changes."""
    if database_path(home).exists():
        with open_database(home) as db:
            if captured.is_captured(db):
                _collect(db)


def _collect(db: Database) -> None:
    while captured.collect(db):
        pass
