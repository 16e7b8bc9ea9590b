"""The failed jobs that a form selects: the ticked jobs, or all jobs that match a filter."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast
from urllib.parse import quote

from hivepipe.errors import HivepipeError
from hivepipe.queue.failed_jobs import FailedJob, Verb

Fields = dict[str, list[str]]  # fields of a submitted form
Of = Literal["ticked", "shown"]


class FormError(HivepipeError):
    """A submitted form is invalid."""


@dataclass(frozen=True)
class Choice:
    """A submitted form.

    If the form chooses all jobs that the page showed, jobs that failed after `until` are left out.
    `is_sure` means that the user has confirmed the action.
    """

    verb: Verb
    of: Of
    names: frozenset[str]
    operation: str
    reason: str
    until: str
    is_sure: bool

    @classmethod
    def of_form(cls, found: Fields) -> "Choice":
        """Return the choice in the fields of a form, or raise FormError."""
        fields = {name: values[0] for name, values in found.items()}
        verb, _, of = fields.get("what", "").partition(" ")
        if verb not in ("retry", "discard") or of not in ("ticked", "shown"):
            raise FormError(
                "the form must say what to do: `retry` or `discard`, `ticked` or `shown`"
            )
        return cls(
            verb=cast("Verb", verb),
            of=cast("Of", of),
            names=frozenset(found.get("job", ())),
            operation=fields.get("operation", ""),
            reason=fields.get("reason", ""),
            until=fields.get("until", ""),
            is_sure=fields.get("sure") == "yes",
        )

    def jobs(self, found: Iterable[FailedJob]) -> list[FailedJob]:
        """Return the selected failed jobs; raise FormError if no job is selected."""
        if self.of == "ticked":
            meant = [job for job in found if name_of(job) in self.names]
        else:
            meant = jobs_matching(found, self.operation, self.reason)
            meant = [job for job in meant if not self.until or job.failed_at <= self.until]
        if not meant:
            raise FormError(
                "no failed job is selected: tick some; others may have retried or discarded them"
            )
        return meant


def jobs_matching(found: Iterable[FailedJob], operation: str, reason: str) -> list[FailedJob]:
    """Return the jobs of `operation` whose reason of failure contains `reason` in any case.

    "" matches all.
    """
    return [
        job
        for job in found
        if operation in ("", job.operation) and reason.lower() in job.headline.lower()
    ]


def name_of(job: FailedJob) -> str:
    """Return the job's id percent-encoded, because it may contain any bytes."""
    return quote(job.id, safe="", errors="surrogateescape")
