"""Decode the envelopes that `hivepipe.events.job_plan.encode` wrote, and encode follow-up jobs."""

import json
import math
from _blake2 import blake2b
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson

from hivepipe.errors import BadEnvelopeError, NewerEnvelopeError
from hivepipe.events.claude_code import valid_id
from hivepipe.events.job_plan import (
    ENVELOPE_VERSION,
    Context,
    Job,
    Message,
    dumps,
    envelope_fields,
    queue_of,
    utc,
)
from hivepipe.jobs.args import priority_of
from hivepipe.jobs.origin import Origin
from hivepipe.redact.fields import redact_fields

# version -> function that converts an envelope to the next version. Add a line when
# ENVELOPE_VERSION is raised, because jobs of the last release may still be in queues. Older lines
# may be removed.
UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
LONGEST_SETTLE_SECS = 600.0
DEEPEST = 10  # our envelopes have less than half; a depth of thousands would crash the reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope(Origin):
    """A decoded job with its payload, which the operation's `Args` read.

    `tier` says which sessions are looked up if the event named no session: "own" or "any" (see
    hivepipe.operations.registry).
    """

    priority: int
    payload: dict[str, Any]
    tier: str = ""

    @property
    def settle_secs(self) -> float:
        """Return the delay in seconds that the job requests while its input may grow, or 0."""
        wanted = self.payload.get("settle_s")
        if isinstance(wanted, int | float) and math.isfinite(wanted):
            return min(max(float(wanted), 0.0), LONGEST_SETTLE_SECS)
        return 0.0


def read_envelope(text: str | bytes) -> Envelope:
    """Decode and check one envelope. Raise BadEnvelopeError if the envelope is invalid."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadEnvelopeError("not valid JSON") from error
    return envelope_of(value)


def redacted(text: str) -> str:
    """Return the envelope as ASCII with every text in it redacted, except keys and times."""
    return json.dumps(redact_fields(orjson.loads(text)), separators=(",", ":"))


def _depth(value: object, limit: int = DEEPEST + 1) -> int:
    """Return the nesting depth of lists and objects in a value, but at most `limit`."""
    if limit == 0 or not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max((_depth(item, limit - 1) for item in inner), default=0)


def _upgraded(value: dict[str, Any]) -> dict[str, Any]:
    version = value.get("v")
    if not isinstance(version, int):
        raise BadEnvelopeError("its version is not a number")
    if version > ENVELOPE_VERSION:
        raise NewerEnvelopeError(version)
    while version != ENVELOPE_VERSION:
        if version not in UPGRADES:
            raise BadEnvelopeError(f"version {version!r} is not known, or too old")
        try:
            value = UPGRADES[version](value)
        except (LookupError, TypeError, ValueError, AttributeError):
            raise BadEnvelopeError(f"not an envelope of version {version}") from None
        version += 1
    return value


def envelope_of(value: object) -> Envelope:
    """Check one decoded envelope.

    Raise BadEnvelopeError if it is invalid, or NewerEnvelopeError if it needs a newer hivepipe.
    """
    if not isinstance(value, dict):
        raise BadEnvelopeError("not an object")
    if _depth(value) > DEEPEST:
        raise BadEnvelopeError("nested too deeply")
    value = _upgraded(value)
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        raise BadEnvelopeError("no metadata")
    payload = value.get("payload") or {}
    if not isinstance(payload, dict):
        raise BadEnvelopeError("the payload is not an object")
    envelope = Envelope(
        id=value.get("id") or "",
        operation=value.get("operation") or "",
        priority=value.get("priority") or 0,
        payload=payload,
        session=metadata.get("session") or "",
        instance=metadata.get("instance") or "",
        project=metadata.get("project") or "",
        agent=_id_or_empty(metadata.get("agent")),
        event_time_ns=value.get("event_time_ns") or 0,
        **_common_fields(payload),
    )
    wanted = (
        (envelope.id, str),
        (envelope.operation, str),
        (envelope.priority, int),
        (envelope.session, str),
        (envelope.instance, str),
        (envelope.project, str),
        (envelope.event_time_ns, int),
    )
    if not all(isinstance(part, kind) for part, kind in wanted):
        raise BadEnvelopeError("a field has the wrong type")
    for text in (envelope.session, envelope.instance):
        if text and valid_id(text) != text:
            raise BadEnvelopeError("session or instance is not a valid id")
    if not (envelope.id and envelope.operation and 0 < envelope.event_time_ns < 1 << 62):
        raise BadEnvelopeError("id, operation or event time is missing")
    return envelope


def _id_or_empty(value: object) -> str:
    """Return a valid id, or "" for any other value. An invalid id does not make the job invalid."""
    return value if isinstance(value, str) and valid_id(value) == value else ""


def _common_fields(payload: dict[str, Any]) -> dict[str, Any]:
    """Return a payload's valid fields that every operation may have: tier, slot, periodic."""
    wanted = (("tier", str), ("slot", int))
    found = ((name, payload.get(name), kind) for name, kind in wanted)
    valid = {name: value for name, value, kind in found if type(value) is kind}
    return {**valid, "periodic": _id_or_empty(payload.get("periodic"))}  # names a lock file


def follow_ups(parent: Origin, jobs: list[Job]) -> list[Message]:
    """Return the messages of follow-up jobs, each in the queue of its priority.

    The id is derived from the parent's id and the job's content. If the parent is executed twice,
    an equal follow-up job has the same id and is applied only once.
    """
    return [follow_up(parent, job, number) for number, job in enumerate(jobs)]


def follow_up(parent: Origin, job: Job, number: int = 0, queue: str = "") -> Message:
    content = f"{parent.id}\0{job.operation}\0{dumps(job.payload)}"
    id = blake2b(content.encode(), digest_size=16).hexdigest()
    return compose(id, job, parent.event_time_ns, number=number, parent=parent, queue=queue)


def compose(
    id: str,
    job: Job,
    event_time_ns: int,
    priority: int = 0,
    number: int = 0,
    parent: Origin | None = None,
    queue: str = "",
) -> Message:
    """Return the message of a job that no hook made.

    The job belongs to the parent's session, or to no session. Without `queue`, the job is for the
    queue of its priority. Without `priority`, the operation's is used; raise KeyError if that is
    unknown.
    """
    priority = priority or priority_of(job.operation)
    context, session = Context(event_time_ns), ""
    if parent:
        context.instance, context.project = parent.instance, parent.project
        session = parent.session
    text = dumps(envelope_fields(id, job, priority, number, context, session, ""))
    description = f"{job.operation} {job.subject[:60]}".rstrip()
    return Message(id, "", queue or queue_of(priority), description, utc(event_time_ns), text)
