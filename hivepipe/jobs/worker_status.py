"""The arguments of record_status, which a hive's monitor enqueues if the store is busy."""

from hivepipe.jobs.args import Args, Id


class RecordStatus(Args, handler="hive.record_status", priority=5, without_session=True):
    """A status of a hive worker, as the monitor read it."""

    worker_id: Id
    status: str = ""
    sha256: str = ""
    changed_ns: int
    changed_at: str = ""
    content: str = ""
