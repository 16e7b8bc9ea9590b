"""Operations of summaries."""

from hivepipe.jobs.args import Args
from hivepipe.queue.names import LLM


class SummariseSession(Args, handler="summaries.summarise_session", priority=10, queue=LLM):
    """Summarise a session; with `compacted`, store Claude Code's summary of a compaction."""

    compacted: bool | None = None
    silent_since: str | None = None


class RecordSummary(Args, handler="summaries.record_summary", priority=8):
    """A summary of a session, and whether each recalled memory was useful."""

    state: str
    made_at: str
    kind: str
    summary: str
    provider: str = ""
    model: str = ""
    reason: str = ""
    harness: str = "claude-code"
    key_learnings: list[str] | tuple[str, ...] = ()
    files: list[str] | tuple[str, ...] = ()
    open_ends: list[str] | tuple[str, ...] = ()
    requests: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | int | None = None
    useful: dict[str, bool] | None = None
