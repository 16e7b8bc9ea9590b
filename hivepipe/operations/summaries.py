"""summarise_session and record_summary: the summary of a session.

input        the end of the archive, its metadata, and the recalled memories
summary      made by `summariser`
storage      by `record_summary`; then the ratings of memories are sent
"""

import logging
from dataclasses import replace
from functools import partial

from hivepipe.agents.memory_server import send_ratings
from hivepipe.db import memory_ratings, summaries
from hivepipe.db.database import Database
from hivepipe.db.listings import read_store
from hivepipe.errors import BadEnvelopeError
from hivepipe.home import read_record
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.operations.archive import archives_of
from hivepipe.operations.families.summaries import RecordSummary, SummariseSession
from hivepipe.operations.forgotten_sessions import is_forgotten
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.summariser import Summariser, SummaryInput, of_compaction
from hivepipe.redact import redact_text
from hivepipe.settings import switched_on
from hivepipe.summaries.excerpt import excerpt_of
from hivepipe.summaries.question import Memory
from hivepipe.times import stored_time

TAIL_BYTES = 4 << 20  # bytes read from the end of an archive for an excerpt of 20 kB
IDLE_NS = 1800 * 10**9
LONGEST_IDLE_NS = 86_400 * 10**9  # sessions idle for longer are not checked again

logger = logging.getLogger("hivepipe.summaries")


def summarise_session(context: JobContext, job: Origin, args: SummariseSession) -> None:
    """Summarise a session once for each state of its archive. Raise TryLaterError to retry."""
    home = context.home
    if is_forgotten(home, job.session) or read_record(job.project).get("state") == "off":
        return
    summary_input = summary_input_of(home, job.session)
    if summary_input is None:
        return
    if args.compacted:
        _keep_compaction(context, job, summary_input)
        return
    state = summary_input.excerpt.state
    if read_store(home, lambda store: summaries.is_summarised(store, job.session, state), None):
        return
    keep = partial(keep_summary, context, job)
    result = Summariser(home, keep, context.stop_requested).summarise(summary_input)
    rate_memories(home, job.session, result)


def _keep_compaction(context: JobContext, job: Origin, summary_input: SummaryInput) -> None:
    """Store Claude Code's own summary of a compaction, unless a model's summary exists."""
    result = of_compaction(summary_input)
    if result is None:
        return
    known = read_store(context.home, lambda store: summaries.list_summaries(store, job.session), [])
    if any(entry["kind"] == summaries.LLM for entry in known):
        return
    keep_summary(context, job, result)
    rate_memories(context.home, job.session, result)


def summarise_idle(context: JobContext, job: Origin, _args: Args) -> None:
    """Enqueue summaries of open sessions that are idle for half an hour, but not for a day."""
    until = stored_time(job.event_time_ns - IDLE_NS)
    since = stored_time(job.event_time_ns - LONGEST_IDLE_NS)
    found = read_store(
        context.home, lambda store: summaries.silent_sessions(store, since, until), []
    )
    for session in found:
        own = replace(
            job,
            id=f"idle-{session['id']}",  # constant while the session stays idle
            session=session["id"],
            project=session["project"] or "",
        )
        summarise = SummariseSession(silent_since=session["last"])
        context.follow_up(own, [summarise.job(own.session[:8])])


def summary_input_of(home: str, session: str) -> SummaryInput | None:
    """Return the input from a session's archive, or None if there is no archive or message."""
    archives = archives_of(home)
    entry = archives.index.entries().get(session)
    if entry is None:
        return None
    try:
        with archives.opened(entry) as kept, kept.open_to_read() as file:
            offsets = kept.offsets()
            length = offsets.length if offsets else 0
            begin = max(length - TAIL_BYTES, 0)
            file.seek(begin)
            lines = file.read(length - begin).split(b"\n")
            excerpt = excerpt_of(lines[1:] if begin else lines)
            meta = archives.meta(kept) or {}
    except FileNotFoundError:
        return None
    clean = excerpt._replace(text=redact_text(excerpt.text))
    # The part that was read may be one image. Earlier messages are counted in the metadata.
    if not clean.messages and not begin:
        return None
    return SummaryInput(session, clean, meta, memories=_memories(home, session))


def _memories(home: str, session: str) -> tuple[Memory, ...]:
    """Return the memories that were recalled into the session, or () if their rating is off."""
    if not switched_on("HIVEPIPE_MEMORY_RATING"):
        return ()
    found = read_store(home, lambda store: memory_ratings.retrieved(store, session), [])
    return tuple(Memory(name, redact_text(text)) for name, text in found)


# ---- the row


def keep_summary(context: JobContext, job: Origin, made: RecordSummary) -> None:
    """Store a summary with its ratings. After the return, a kill cannot lose the summary."""
    context.follow_up(job, [made.job(job.session[:8])])


def rate_memories(home: str, session: str, made: RecordSummary) -> str:
    """Send a summary's ratings of memories to the memory server; return the error, or ""."""
    problem = send_ratings(home, session, made.useful or {})
    if problem:
        logger.warning("the memory server did not accept the ratings: %s", problem)
    return problem


def record_summary(db: Database, job: Origin, args: RecordSummary) -> None:
    if not all((args.state, args.made_at, args.kind, args.summary)):
        raise BadEnvelopeError("a summary without state, time, kind or text")
    summaries.record_summary(db, job.session, args)
    for name, of_use in (args.useful or {}).items():
        if isinstance(of_use, bool):
            memory_ratings.rate(db, job.session, name, of_use, args.made_at)
