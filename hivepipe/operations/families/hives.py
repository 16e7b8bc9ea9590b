"""The operation of hives. Its class is in `jobs`, because senders must not import `operations`."""

from hivepipe.jobs.worker_status import RecordStatus

__all__ = ["RecordStatus"]
