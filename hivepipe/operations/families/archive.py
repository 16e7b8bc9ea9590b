"""Operations of archives, and of data from transcripts."""

from typing import Any

from hivepipe.jobs.args import Args, Every
from hivepipe.queue.names import SLOW

DAY_SECS = 86_400


class ArchiveTranscript(Args, handler="archive.archive_transcript", queue=SLOW):
    """Append the new lines of a transcript to its archive.

    `kind` is main or subagent. `claude` is the folder of Claude Code's files, if it is not the
    default. `compacted` is True if the transcript was just compacted, `ends` if its session has
    ended. `settle_s` is the delay of the job in seconds.
    """

    path: str = ""
    kind: str = ""
    agent_id: str = ""
    agent_type: str = ""
    claude: str = ""
    compacted: bool | None = None
    ends: bool | None = None
    settle_s: int | float | None = None


class RecordUsage(Args, handler="usage.record_usage", priority=8, without_session=True):
    """Usage of messages, and facts about their session: see hivepipe.operations.usage."""

    messages: list[Any]
    said: dict[str, Any] | None = None


class SweepTranscripts(
    Args,
    handler="sweep.sweep_transcripts",
    priority=8,
    queue=SLOW,
    every=Every(DAY_SECS, "sweep", "transcripts without hooks are not archived"),
):
    """Archive the transcripts whose hooks did not run."""


class CompressArchives(
    Args,
    handler="sweep.compress_archives",
    priority=9,
    queue=SLOW,
    every=Every(DAY_SECS, "compress", "old archives are not compressed"),
):
    """Compress the archives that have not grown for a month."""
