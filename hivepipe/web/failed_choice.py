"""Which failed jobs a form means: those that were ticked, or all that a filter shows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast
from urllib.parse import parse_qs, quote

from hivepipe.errors import HivepipeError
from hivepipe.queue.failed_actions import Verb
from hivepipe.queue.failed_jobs import FailedJob

_MOST_FIELDS = 10_000
Of = Literal["ticked", "shown"]


class FormError(HivepipeError):
    """A form cannot be used."""


@dataclass(frozen=True)
class Choice:
    """What a form asks for; `until`: later failures do not count; `is_sure`: it was asked."""

    verb: Verb
    of: Of
    names: frozenset[str]
    operation: str
    reason: str
    until: str
    is_sure: bool
    token: str

    @classmethod
    def of_form(cls, raw: bytes) -> "Choice":
        """Return the choice of an URL-encoded form; FormError: it is none."""
        try:
            found = parse_qs(raw.decode(), max_num_fields=_MOST_FIELDS, keep_blank_values=True)
        except ValueError:
            raise FormError("this is not a form of this page") from None
        fields = {name: values[0] for name, values in found.items()}
        verb, _, of = fields.get("what", "").partition(" ")
        if verb not in ("retry", "discard") or of not in ("ticked", "shown"):
            raise FormError("a form says what to do: `retry` or `discard`, `ticked` or `shown`")
        return cls(
            verb=cast("Verb", verb),
            of=cast("Of", of),
            names=frozenset(found.get("job", ())),
            operation=fields.get("operation", ""),
            reason=fields.get("reason", ""),
            until=fields.get("until", ""),
            is_sure=fields.get("sure") == "yes",
            token=fields.get("token", ""),
        )

    def jobs(self, found: Iterable[FailedJob]) -> list[FailedJob]:
        """Return those of the failed jobs that are meant; FormError: none."""
        if self.of == "ticked":
            meant = [job for job in found if name_of(job) in self.names]
        else:
            meant = chosen_by(found, self.operation, self.reason)
            meant = [job for job in meant if not self.until or job.failed_at <= self.until]
        if not meant:
            raise FormError(
                "no failed job is meant: tick some; or they were retried or discarded already"
            )
        return meant


def chosen_by(found: Iterable[FailedJob], operation: str, reason: str) -> list[FailedJob]:
    """Return the jobs of an operation whose reason contains a text; "": any."""
    return [
        job
        for job in found
        if operation in ("", job.operation) and reason.lower() in job.headline.lower()
    ]


def name_of(job: FailedJob) -> str:
    """Return the id as a form can hold it, whatever its bytes are."""
    return quote(job.id, safe="", errors="surrogateescape")
