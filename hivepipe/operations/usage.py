"""Store what a job read in a transcript: the usage of messages, and facts about the session."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hivepipe.costs.tokens import Rate, Tokens
from hivepipe.db import agents, history, unwritten_usage, usage
from hivepipe.db.database import Database
from hivepipe.db.forget import is_forgotten
from hivepipe.db.sessions import describe_session, session_exists
from hivepipe.errors import BadEnvelopeError
from hivepipe.events.job_plan import Job
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.archive import RecordUsage
from hivepipe.operations.families.history import RecordNotice
from hivepipe.operations.history import BY_A_PERSON, INTERRUPTED, record_notice
from hivepipe.times import ns_of
from hivepipe.transcripts.session_facts import CUSTOM_TITLE, SessionFacts
from hivepipe.transcripts.usage import Usage

MESSAGES_PER_JOB = 100  # about 25 kB


def usage_jobs(usages: list[Usage], facts: SessionFacts | None = None) -> Iterator[Job]:
    """Yield the jobs that record the usage of messages and the facts about their session."""
    if facts:
        counts = [
            [started_ms, duration_ms, {model: [*tokens] for model, tokens in models.items()}, time]
            for started_ms, duration_ms, models, time in facts.counts
        ]
        said = {"session": facts.session, "titles": facts.titles, "counts": counts}
        said |= {"scheduled": facts.scheduled, "interrupted": facts.interrupted}
        yield RecordUsage(messages=[], said=said).job(facts.session[:8])
    for at in range(0, len(usages), MESSAGES_PER_JOB):
        some = usages[at : at + MESSAGES_PER_JOB]
        packed = RecordUsage(messages=[_packed(each) for each in some])
        yield packed.job(some[0].session[:8])


def record_usage(db: Database, job: Origin, args: RecordUsage) -> None:
    """Record the usage of messages, except those that a fork repeats from a forgotten session.

    Raise BadEnvelopeError if the usage of a message is invalid.
    """
    for message in args.messages:
        try:
            unpacked = _unpacked(message)
        except (KeyError, TypeError, AttributeError) as error:
            raise BadEnvelopeError(f"not a message's usage: {error!r}") from error
        if not is_forgotten(db, unpacked.session):
            usage.record(db, unpacked)
            _note_model(db, unpacked)
    if args.said and not is_forgotten(db, str(args.said.get("session"))):
        _note_facts(db, job, args.said)


def _note_model(db: Database, message: Usage) -> None:
    """Set the model of a session or agent from its last message, as SessionStart often lacks it."""
    if message.agent:
        agents.name_model(db, message.agent, message.rate.model)
    elif not message.is_sidechain and message.time:
        order = ns_of(message.time)
        describe_session(db, message.session, {"model": message.rate.model}, order)


def _note_facts(db: Database, job: Origin, facts: dict[str, Any]) -> None:
    """Record titles, counts and interruptions, and delete prompts that are not the user's.

    Raise BadEnvelopeError if the facts do not have the form that `usage_jobs` gives them. A title
    by the user takes precedence over a title by Claude, and over earlier titles from hooks.
    """
    try:
        for kind, (title, number) in dict(facts["titles"]).items():
            order = job.event_time_ns if kind == CUSTOM_TITLE else int(number)
            describe_session(db, str(facts["session"]), {"objective": str(title)}, order)
        for prompt, start in facts.get("scheduled", ()):
            history.delete_prompt(db, str(facts["session"]), str(prompt), str(start))
        for time in facts.get("interrupted", ()):
            _note_interruption(db, job, str(facts["session"]), ns_of(str(time)))
        for started_ms, duration_ms, models, time in facts.get("counts", ()):
            for model, tokens in models.items():
                unwritten_usage.record(
                    db,
                    str(facts["session"]),
                    int(started_ms),
                    int(duration_ms),
                    model,
                    str(time),
                    Tokens(*map(int, tokens)),
                )
    except (KeyError, TypeError, ValueError) as error:
        raise BadEnvelopeError(f"not the data of a transcript: {error!r}") from error


def _note_interruption(db: Database, job: Origin, session: str, at_ns: int) -> None:
    """Log the end of a turn by a person. `operations.interrupted` misses it before a prompt."""
    if at_ns and session_exists(db, session):
        origin = replace(job, id=f"{job.id}-{at_ns}", session=session, event_time_ns=at_ns)
        record_notice(db, origin, RecordNotice(kind=INTERRUPTED, text=BY_A_PERSON))


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
