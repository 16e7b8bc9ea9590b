"""Operations of summaries. `RecordSummary` is declared in `jobs`, which `db` can import."""

from hivepipe.jobs.args import Args
from hivepipe.jobs.summary import RecordSummary
from hivepipe.queue.names import LLM

__all__ = ["RecordSummary", "SummariseSession"]


class SummariseSession(Args, handler="summaries.summarise_session", priority=10, queue=LLM):
    """Summarise a session; with `compacted`, store Claude Code's summary of a compaction."""

    compacted: bool | None = None
    silent_since: str | None = None
