"""Operations of archives, and of data from transcripts."""

from typing import Any

from hivepipe.jobs.args import Args
from hivepipe.queue.names import SLOW


class ArchiveTranscript(Args, handler="archive.archive_transcript", queue=SLOW):
    """Append the new lines of a transcript to its archive.

    `kind` is main or subagent. `claude` is the folder of Claude Code's files, if it is not the
    default. `compacted` is True if the transcript was just compacted, and `ends` is True if its
    session has ended. `settle_s` is the delay of the job in seconds.
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
    """Record usage of messages, and facts about their session: see hivepipe.operations.usage."""

    messages: list[Any]
    said: dict[str, Any] | None = None
