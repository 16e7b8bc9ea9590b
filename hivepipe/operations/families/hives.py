"""The operation of hives, declared in a module that its sender may import."""

from hivepipe.jobs.worker_status import RecordStatus

__all__ = ["RecordStatus"]
