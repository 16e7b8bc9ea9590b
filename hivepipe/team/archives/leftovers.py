"""Delete the S3 objects that the server's list of segments no longer contains."""

import logging

from hivepipe.errors import TeamError
from hivepipe.team.archives import place, stores
from hivepipe.team.archives.stores import Bucket
from hivepipe.team.connection import Connection, one, translated

AT_ONCE = 100
logger = logging.getLogger(__name__)

DELETED = "objects in the store"
WAITING = "objects that stay in the store until a user with its key runs `hivepipe team store`"


def delete_due(connection: Connection, bucket: Bucket) -> int:
    """Delete objects due for deletion (a member deletes its own only); return their number."""
    total = 0
    while done := _delete_some(connection, bucket):
        total += done
    return total


def delete_now(connection: Connection) -> dict[str, int]:
    """Delete the objects that are due for deletion, if this user has the bucket's key.

    Return the number of deleted objects or, without the key, of waiting objects; {} for none.
    """
    where = place.parse(one(connection, "SELECT hivepipe.archive_store()"))
    if not where.bucket:
        return {}
    if stores.has_key():
        deleted = delete_due(connection, stores.bucket_of(connection, where))
        return {DELETED: deleted} if deleted else {}
    return _waiting(connection)


def delete_now_or_later(connection: Connection) -> dict[str, int]:
    """Call `delete_now`; if the bucket is away, return how many objects wait for deletion."""
    try:
        return delete_now(connection)
    except TeamError as error:
        logger.warning("the objects of archives are not deleted now: %s", error)
        return _waiting(connection)


def _waiting(connection: Connection) -> dict[str, int]:
    with connection.transaction():
        sql = "SELECT count(*) FROM hivepipe.due_leftovers(%s)"
        waiting = one(connection, sql, 1 << 30)
    return {WAITING: waiting} if waiting else {}


def purge(connection: Connection) -> dict[str, int]:
    """Delete this machine's archives before it leaves the team; return what was deleted where."""
    places: dict[str, int] = one(connection, "SELECT hivepipe.drop_machines_archives()")
    return places | delete_now(connection)


def _delete_some(connection: Connection, bucket: Bucket) -> int:
    """Delete up to AT_ONCE objects and their locked list entries; return how many."""
    with translated(), connection.transaction():
        sql = "SELECT object FROM hivepipe.due_leftovers(%s) AS object"
        names = [row["object"] for row in connection.execute(sql, (AT_ONCE,)).fetchall()]
        bucket.delete(names)
        if names:
            one(connection, "SELECT hivepipe.end_leftovers(%s)", names)
        return len(names)
