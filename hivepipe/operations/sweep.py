"""sweep_transcripts and compress_archives: periodic work on archives."""

import logging
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from hivepipe.archive import scope, upkeep
from hivepipe.archive.archives import ArchiveCallbacks, Archives
from hivepipe.archive.sources import UNKNOWN_TYPE, Source, open_source, transcripts_in
from hivepipe.config.retention import limits_of
from hivepipe.errors import RefusedTranscriptError, RetentionError, SearchError
from hivepipe.home import kept_folder
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.operations.archive import archives_of, callbacks_of
from hivepipe.operations.found_archives import import_found
from hivepipe.operations.found_exports import REFUSED
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.unindexed import update_search_index

DAY_SECS = 86_400.0
QUIET_SECS = 3600.0  # a transcript without growth for this time is complete

logger = logging.getLogger("hivepipe.archive")


@dataclass
class SweepResult:
    """The result of a sweep: counts of transcripts, and errors by path."""

    taken: int = 0
    lines: int = 0
    unchanged: int = 0
    foreign: int = 0  # transcripts of other projects, or of no project
    expired: int = 0  # transcripts older than the oldest archive that is kept
    failed: dict[str, str] = field(default_factory=dict)


def sweep_transcripts(context: JobContext, job: Origin, _args: Args) -> None:
    """Archive this project's transcripts for which no hook ran, and rebuild the archive index.

    Also import a predecessor's files that are new, and update the search index.
    """
    result = sweep(context, job, scope.claude_folders(context.home))
    for row in import_found(context, job, kept_folder(context.home)):
        if row.outcome == REFUSED:
            logger.warning("not imported: %s: %s", row.path, row.reason)
    for reason in result.failed.values():
        logger.warning("a transcript could not be archived: %s", reason)
    try:
        update_search_index(context.home, archives_of(context.home), context.stop_requested)
    except SearchError as error:  # the next search reports it
        logger.warning("%s", error)
    logger.info(
        "sweep: %d of %d transcripts had grown", result.taken, result.taken + result.unchanged
    )


def sweep(
    context: JobContext,
    job: Origin,
    claude_folders: list[str],
    on_look: Callable[[SweepResult], None] = lambda _: None,
) -> SweepResult:
    """Archive new lines of the transcripts in these folders, and rebuild the archive index.

    `on_look` is called with the result so far before each transcript. Raise StoppedError if the
    process is told to stop.
    """
    archives = archives_of(context.home)
    followed = scope.followed_folders(context.home)
    callbacks = callbacks_of(context, job)
    oldest = time.time() - _kept_days(context.home) * DAY_SECS
    result = SweepResult()
    for folder in claude_folders:
        for path in transcripts_in(folder):
            callbacks.check_stop()
            on_look(result)
            try:
                with open_source(path, folder) as source:
                    if source.status.st_mtime < oldest:  # its archive would be outdated at once
                        result.expired += 1
                        continue
                    _archive_new_lines(context.home, archives, source, callbacks, followed, result)
            except RefusedTranscriptError:
                result.foreign += 1
            except FileNotFoundError:  # the file was deleted meanwhile
                continue
            except OSError as error:
                result.failed[path] = error.strerror or str(error)
    for session, entry in archives.not_described().items():
        callbacks.check_stop()
        try:
            archives.describe_again(session, callbacks)
        except OSError as error:
            result.failed[f"{archives.root}/{entry['path']}"] = error.strerror or str(error)
    upkeep.rebuild_index(archives)
    return result


def _kept_days(home: str) -> float:
    try:
        return limits_of(home).archives
    except RetentionError:  # no limits: nothing is deleted, and `prune_files` reports it
        return math.inf


def _archive_new_lines(
    home: str,
    archives: Archives,
    source: Source,
    callbacks: ArchiveCallbacks,
    followed: list[str],
    result: SweepResult,
) -> None:
    """Archive the new lines of a transcript, and count the transcript in `result`."""
    if archives.has_all_of(source):
        result.unchanged += 1
        return
    cwd = source.head().cwd or _cwd_of_session(archives, source)
    if not cwd or not scope.may_take(home, cwd, followed):
        result.foreign += 1
        return
    is_settled = time.time() - source.status.st_mtime > QUIET_SECS
    lines = archives.extend(
        _typed(archives, source), callbacks, settled=is_settled, describes_session=False
    )
    result.lines += lines
    result.taken += bool(lines)
    result.unchanged += not lines


def _cwd_of_session(archives: Archives, source: Source) -> str:
    """Return the working folder of a subagent's session, or "" if the session is not archived."""
    entry = archives.index.entries().get(source.session) if source.agent else None
    return str((archives.meta_of(entry) or {}).get("cwd") or "") if entry else ""


def _typed(archives: Archives, source: Source) -> Source:
    """Return a subagent's source with the agent type from the call in the session's archive."""
    entry = archives.index.entries().get(source.session)
    if source.agent_type != UNKNOWN_TYPE or entry is None:
        return source
    with suppress(OSError), archives.opened(entry) as kept:
        totals = archives.totals(kept)
        if totals and source.agent in totals.agents:
            return replace(source, agent_type=totals.agents[source.agent])
    return source


def compress_archives(context: JobContext, _job: Origin, _args: Args) -> None:
    compressed = upkeep.compress(archives_of(context.home), context.check_stop)
    if compressed:
        logger.info("compressed %d archives", compressed)
