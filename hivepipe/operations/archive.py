"""archive_transcript: append the new lines of a transcript to its archive."""

import logging
import os
import time
from collections import Counter
from contextlib import ExitStack, suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hivepipe.archive import upkeep
from hivepipe.archive.append import Chunk
from hivepipe.archive.archives import ArchiveCallbacks, Archives
from hivepipe.archive.scope import remember_claude_folder
from hivepipe.archive.search.index_file import remove_index
from hivepipe.archive.sources import (
    Source,
    default_folder,
    open_source,
    transcripts_of_agents,
)
from hivepipe.config import setting_table
from hivepipe.costs.price_table import built_in, prices_in_force
from hivepipe.costs.prices import PriceTable
from hivepipe.db.listings import read_store
from hivepipe.db.session_state import is_open
from hivepipe.errors import PricesError, RefusedTranscriptError
from hivepipe.files.change_stamp import Stamp, stamp
from hivepipe.files.hook_log import log_line
from hivepipe.files.logs import claim_names
from hivepipe.files.manifest import Manifest
from hivepipe.home import Place, kept_folder, logs_folder, read_record
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.archive import ArchiveTranscript
from hivepipe.operations.families.summaries import SummariseSession
from hivepipe.operations.forgotten_sessions import is_forgotten
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.search import index_path
from hivepipe.operations.usage import usage_jobs
from hivepipe.redact.audit_log import record_archive, record_cleared, record_redaction
from hivepipe.redact.of_home import load_redactor
from hivepipe.transcripts.description import describe
from hivepipe.transcripts.session_facts import SessionFacts
from hivepipe.transcripts.totals import Totals

if TYPE_CHECKING:
    from hivepipe.redact.redactor import Redactor

PRICES_FOR_SECS = 300.0

logger = logging.getLogger("hivepipe.archive")


def archive_transcript(context: JobContext, job: Origin, args: ArchiveTranscript) -> None:
    """Bring an archive up to date with its transcript.

    A transcript that is missing or outside Claude's folders is skipped, and logged unless it may
    be missing or the job is not settled. A transcript of a forgotten session is skipped. At a
    session's end, the transcripts of its subagents are archived, too. A settled job enqueues a
    summary after a compaction, or if the session has ended.
    """
    if is_forgotten(context.home, job.session):
        return
    is_settled = (args.settle_s or 0) > 0
    with ExitStack() as stack:
        try:
            source = stack.enter_context(
                open_source(args.path, args.claude, job.session, args.agent_type)
            )
        except FileNotFoundError:
            if not _is_expected(context.home, job.session, args):
                _warn(context, job, "transcript not found", is_settled)
            return
        except RefusedTranscriptError as error:
            _warn(context, job, f"transcript refused: {error}", is_settled)
            return
        remember_claude_folder(context.home, args.claude)
        archives_of(context.home).extend(source, callbacks_of(context, job), settled=is_settled)
        if args.ends:
            _archive_agents(context, job, args)
        is_over = args.ends and _is_over(context.home, job.session)
        if is_settled and (args.compacted or is_over):
            summarise = SummariseSession(compacted=args.compacted or None)
            context.follow_up(job, [summarise.job(source.session[:8])])


def _is_expected(home: str, session: str, args: ArchiveTranscript) -> bool:
    """Tell whether the transcript may be missing.

    Claude Code writes none with `--no-session-persistence`, and none for a session that ended
    before its first prompt; such a session has no archive. It moves the transcripts of a session
    that leaves a worktree, and the session's end names their new folder. If Claude Code's folder is
    missing too, as in a container that does not share it, the transcript may exist elsewhere.
    """
    if not archives_of(home).of_session(session):
        return os.path.isdir(args.claude or default_folder())
    found = read_store(home, lambda store: store.session(session), None)
    folder = os.path.dirname((found and found["transcript_path"]) or args.path)
    return not args.path.startswith(f"{folder}/")


def _archive_agents(context: JobContext, job: Origin, args: ArchiveTranscript) -> None:
    """Archive the transcripts of subagents, because a killed client does not report their end.

    The metadata of the session are written again at the end, because an earlier attempt may have
    ended before that.
    """
    archives, callbacks = archives_of(context.home), callbacks_of(context, job)
    for path in transcripts_of_agents(args.path):
        with (
            suppress(FileNotFoundError, RefusedTranscriptError),
            open_source(path, args.claude, job.session, "") as source,
        ):
            if not archives.has_all_of(source):
                archives.extend(source, callbacks, settled=True, describes_session=False)
    archives.describe_again(job.session, callbacks)


def _is_over(home: str, session: str) -> bool:
    """Tell whether the session has ended and was not resumed."""
    return not read_store(home, lambda store: is_open(store, session), otherwise=False)


@cache
def archives_of(home: str) -> Archives:
    """Return the archives of a home. The object has caches, so a process makes it only once."""
    manifest = Manifest(home)
    archives = Archives(kept_folder(home), manifest)
    if os.path.isdir(home) and manifest.adopts:
        is_last = not _runs_another_version(home)  # a running 1.0.0 creates more archives
        upkeep.adopt(archives)
        if is_last:
            manifest.set_adopts(adopts=False)
    return archives


def _runs_another_version(home: str) -> bool:
    from hivepipe.stack import supervisor  # noqa: PLC0415  only after an upgrade from 1.0.0
    from hivepipe.stack.runtime_folder import Stack  # noqa: PLC0415

    return supervisor.is_of_another_version(Stack.of(Place(home, home, read_record(home))))


def callbacks_of(context: JobContext, job: Origin, *, with_usage: bool = True) -> ArchiveCallbacks:
    """Return the callbacks of an archive.

    With `with_usage`, the usage of messages is stored and counts as cost. Raise RedactionRuleError
    if a rule of the user is invalid: nothing is archived without all rules.
    """
    redactor = _redactor(context.home, tuple(map(stamp, setting_table.files(context.home))))

    def described(totals: Totals, subagents: list[Totals]) -> dict[str, Any]:
        return describe(
            totals, _prices(context.home, time.monotonic() // PRICES_FOR_SECS), subagents
        )

    def on_chunk(source: Source, path: str, chunk: Chunk) -> None:
        if with_usage:
            # An agent's title is not its session's title.
            facts = SessionFacts() if source.agent else chunk.facts
            context.follow_up(job, [*usage_jobs(chunk.usages, facts)])
        claim_names(kept_folder(context.home), archives_of(context.home).manifest)
        kinds = Counter(map(redactor.kind, chunk.redactions.elements()))
        _audit(kept_folder(context.home), source.key, path, kinds, not chunk.before.length)

    def on_cleared(key: str, lines: int) -> None:
        remove_index(index_path(context.home))  # a search must not find removed text
        record_cleared(kept_folder(context.home), key, lines)

    return ArchiveCallbacks(
        redactor,
        described,
        on_chunk,
        on_cleared,
        partial(is_forgotten, context.home),
        context.stop_requested,
    )


def _audit(folder: str, key: str, path: str, kinds: Counter[str], is_new: bool) -> None:
    """Log a new archive and its redactions; for an older archive, log new redactions if any."""
    if is_new:
        record_archive(folder, Path(path))
    if is_new or kinds:
        record_redaction(folder, key, kinds)


@lru_cache(maxsize=4)
def _redactor(home: str, _stamps: tuple[Stamp, ...]) -> "Redactor":
    """Return a home's redactor, made again if the stamps of the rule files (`_stamps`) changed."""
    return load_redactor(home)


@lru_cache(maxsize=4)
def _prices(home: str, _period: float) -> PriceTable:
    """Return the price table. Its file is read once per `_period`, not for each archived turn."""
    try:
        return prices_in_force(home)
    except PricesError as error:  # wrong prices are no reason to skip a transcript
        logger.warning("%s; the built-in prices are used", error)
        return built_in()


def _warn(context: JobContext, job: Origin, what: str, is_settled: bool) -> None:
    """Log a warning, unless Claude Code may still write the transcript (not `is_settled`)."""
    if is_settled:
        text = f"{what} (session {job.session})"
        logger.warning("%s", text)
        log_line(logs_folder(context.home), "ArchiveTranscript", "WARNING", text)
