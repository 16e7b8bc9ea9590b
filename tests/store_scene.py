"""A new database, and jobs of a session that change it."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from hivepipe.db.database import Database
from hivepipe.jobs.envelope import Envelope
from hivepipe.operations.registry import execute

AT_NS = 1_795_222_800 * 10**9  # 2026-11-21 01:00 UTC


@cache
def _content() -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder, "hive.db")
        Database(path).close()
        return path.read_bytes()


def new_database(path: Path, busy_timeout_secs: float = 5.0) -> Database:
    """Create a database and open it. A copy takes much less time than all migrations.

    The database appears as a whole, and none may exist: a process may have opened it.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = path.with_name(f"{path.name}.made")
    made.touch(mode=0o600)
    made.write_bytes(_content())
    path.hardlink_to(made)
    made.unlink()
    return Database(path, busy_timeout_secs)


def job_of(
    operation: str,
    at_ns: int = AT_NS,
    session: str = "s-1",
    instance: str = "i-1",
    caller: str = "",
    **payload: object,
) -> Envelope:
    """Return a job of a session; `caller` is the agent in which its event was fired."""
    return Envelope(
        id=f"{operation}-{instance}-{at_ns}-{payload.get('agent_id', '')}",
        operation=operation,
        priority=1,
        payload={"swarm": "swarm-1", **payload},
        session=session,
        instance=instance,
        project="/shop",
        agent=caller,
        event_time_ns=at_ns,
    )


def apply(db: Database, operation: str, at_ns: int = AT_NS, **fields: str | object) -> None:
    with db.transaction():
        execute(db, job_of(operation, at_ns, **fields))  # type: ignore[arg-type]
