"""Retry or discard failed jobs for a person, and record who did it."""

from collections import Counter
from typing import Literal

from hivepipe.errors import HivepipeError
from hivepipe.files.action_log import Action, record
from hivepipe.queue.failed_jobs import FailedJob, FailedJobs
from hivepipe.text.plurals import counted

Verb = Literal["retry", "discard"]
IDS_RECORDED = 100


def retry_or_discard(
    store: FailedJobs, home: str, verb: Verb, jobs: list[FailedJob], by: str
) -> Action:
    """Retry or discard jobs; return what was recorded.

    `by` is `command`, or the page and its client. Raise HivepipeError if the action is done but
    cannot be recorded.
    """
    done = store.retry(jobs) if verb == "retry" else store.discard(jobs)
    try:
        return record(
            home,
            by=by,
            action=verb,
            chosen=len(jobs),
            done=done,
            operations=dict(Counter(job.operation for job in jobs)),
            ids=[job.id.encode("utf-8", "replace").decode() for job in jobs[:IDS_RECORDED]],
        )
    except OSError as error:
        text = f"{verb} of {counted(done, 'job')} is done, but actions.log cannot be written"
        raise HivepipeError(f"{text}: {error}") from error
