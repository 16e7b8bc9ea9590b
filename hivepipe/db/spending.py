"""The ledger of hivepipe's own language model costs, one file for all projects of the user.

A call is reserved at its maximum cost before it is made, and settled at its actual cost. The
reservation of a killed process counts in full, and its call is not repeated. The file contains no
texts, and session ids only as hashes.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from hivepipe.errors import DamagedLedgerError, StoreError
from hivepipe.files.sqlite_file import open_to_write, transaction
from hivepipe.home import make_folders, state_folder

FILE_NAME = "spending.db"
BUSY_TIMEOUT_SECS = 10.0
MICRO = 1_000_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
  id INTEGER PRIMARY KEY, subject TEXT NOT NULL, pid INTEGER NOT NULL,
  at REAL NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL, home TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'answered', 'failed')),
  requests INTEGER NOT NULL, tokens INTEGER NOT NULL, micro_usd INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS calls_by_time ON calls (at);
CREATE INDEX IF NOT EXISTS calls_by_subject ON calls (subject);
"""


class Amount(NamedTuple):
    """Numbers of requests and tokens, and a cost in millionths of a dollar."""

    requests: int
    tokens: int
    micro_usd: int

    @property
    def dollars(self) -> float:
        return self.micro_usd / MICRO


class Tries(NamedTuple):
    """The calls about a subject: number of failed calls, whether one was answered, open calls."""

    failed: int
    answered: bool
    open: tuple[tuple[int, float], ...]  # (pid, start time) of the open calls


class Spending:
    """The open ledger of language model costs."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Keep the connection, which the caller closes."""
        self._connection = connection

    def tries(self, subject: str) -> Tries:
        """Return the outcomes of the language model calls about a subject, and the open calls."""
        sql = "SELECT state, pid, at FROM calls WHERE subject = :subject"
        rows = self._connection.execute(sql, {"subject": subject}).fetchall()
        states = [state for state, _, _ in rows]
        asking = tuple((pid, at) for state, pid, at in rows if state == "open")
        return Tries(states.count("failed"), "answered" in states, asking)

    def reserve(
        self,
        subject: str,
        each: Amount,
        wanted: int,
        caps: Amount,
        since: float,
        *,
        provider: str,
        model: str,
        home: str,
    ) -> tuple[int, int]:
        """Reserve up to `wanted` requests about a subject; each costs at most the amount `each`.

        Return the id of the reservation and the number of granted requests. The number is 0 if a
        cap is reached. `caps` limit the amount since `since`, in seconds since 1970.
        """
        with transaction(self._connection):
            spent = self.spent(since)
            granted = min(
                wanted,
                (caps.requests - spent.requests) // max(each.requests, 1),
                (caps.tokens - spent.tokens) // max(each.tokens, 1),
                (caps.micro_usd - spent.micro_usd) // max(each.micro_usd, 1),
            )
            if granted <= 0:
                return 0, 0
            call = {"subject": subject, "provider": provider, "model": model, "home": home}
            amount = {name: granted * number for name, number in each._asdict().items()}
            row = {**call, **amount, "state": "open", "pid": os.getpid(), "at": time.time()}
            values = ", ".join(f":{name}" for name in row)
            sql = f"INSERT INTO calls ({', '.join(row)}) VALUES ({values})"
            return int(self._connection.execute(sql, row).lastrowid or 0), granted

    def settle(self, id: int, *, answered: bool, amount: Amount) -> None:
        """Record the result and the actual cost of a call."""
        sql = """
            UPDATE calls SET state = :state, requests = :requests, tokens = :tokens,
              micro_usd = :micro_usd
            WHERE id = :id
        """
        state = "answered" if answered else "failed"
        self._connection.execute(sql, {"id": id, "state": state, **amount._asdict()})

    def give_up(self, subject: str) -> None:
        """Settle the open calls about a subject as failed, at their full reserved cost."""
        sql = "UPDATE calls SET state = 'failed' WHERE subject = :subject AND state = 'open'"
        self._connection.execute(sql, {"subject": subject})

    def spent(self, since: float) -> Amount:
        """Return the amount spent since a time, including open reservations."""
        sql = """
            SELECT COALESCE(SUM(requests), 0), COALESCE(SUM(tokens), 0),
              COALESCE(SUM(micro_usd), 0)
            FROM calls WHERE at >= :since
        """
        return Amount(*self._connection.execute(sql, {"since": since}).fetchone())


def spending_path() -> Path:
    return Path(state_folder(), FILE_NAME)


@contextmanager
def spending() -> Iterator[Spending]:
    """Open the ledger of costs. Raise StoreError if it is unusable: no model may be asked then.

    The error is DamagedLedgerError if a later attempt would fail, too.
    """
    path = spending_path()
    try:
        make_folders(str(path.parent))
        # No WAL, because the user's folder may be on a network file system.
        connection = open_to_write(path, BUSY_TIMEOUT_SECS)
    except (OSError, sqlite3.Error) as error:
        raise StoreError(f"cannot open {path}: {error}") from error
    try:
        connection.executescript(_SCHEMA)
        yield Spending(connection)
    except sqlite3.OperationalError as error:  # locked, or the disk is full or read-only
        raise StoreError(f"cannot use {path}: {error}") from error
    except sqlite3.Error as error:
        raise DamagedLedgerError(f"cannot use {path}: {error}; move it away") from error
    finally:
        connection.close()
