"""What Claude's messages used: handed back, as jobs, by whoever read a transcript."""

from collections.abc import Iterator
from typing import Any

from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.envelope import Envelope
from hivepipe.errors import BadEnvelopeError
from hivepipe.jobs import Job
from hivepipe.store import usage
from hivepipe.store.database import Database
from hivepipe.store.forgetting import is_forgotten
from hivepipe.transcripts.usage import Usage

MESSAGES_PER_JOB = 100  # some 25 kB


def usage_jobs(usages: list[Usage]) -> Iterator[Job]:
    """Yield the jobs that record what these messages used."""
    for at in range(0, len(usages), MESSAGES_PER_JOB):
        some = usages[at : at + MESSAGES_PER_JOB]
        payload: dict[str, object] = {"messages": [_packed(each) for each in some]}
        yield Job("record_usage", payload, some[0].session[:8])


def record_usage(db: Database, job: Envelope) -> None:
    """Record the messages of one such job; a replay may be of a session that is forgotten."""
    messages = job.payload.get("messages")
    if not isinstance(messages, list):
        raise BadEnvelopeError("no messages")
    for message in messages:
        try:
            unpacked = _unpacked(message)
        except (KeyError, TypeError, AttributeError) as error:
            raise BadEnvelopeError(f"not a message's usage: {error!r}") from error
        if not is_forgotten(db, unpacked.session):
            usage.record(db, unpacked)


def _packed(each: Usage) -> dict[str, object]:
    return {
        "message": each.message_id,
        "request": each.request_id,
        "session": each.session,
        "agent": each.agent,
        "time": each.time,
        "model": each.rate.model,
        "speed": each.rate.speed,
        "region": each.rate.region,
        "sidechain": each.is_sidechain,
        "replay": each.is_replay,
        "tokens": [*each.tokens],
    }


def _unpacked(message: dict[str, Any]) -> Usage:
    tokens = Tokens(*message["tokens"])
    rate = Rate(
        message["model"], message["time"][:10], message["speed"], message["region"], tokens.band
    )
    return Usage(
        message_id=message["message"],
        request_id=message["request"],
        session=message["session"],
        agent=message["agent"],
        time=message["time"],
        rate=rate,
        tokens=tokens,
        is_sidechain=message["sidechain"] is True,
        is_replay=message["replay"] is True,
    )
