"""A summary of a session, as the arguments of record_summary."""

from hivepipe.jobs.args import Args


class RecordSummary(Args, handler="summaries.record_summary", priority=8):
    """A summary; `reason` says why no model wrote it.

    `useful` says for each recalled memory whether it was useful, and is not stored in the summary's
    row.
    """

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

    def row(self) -> dict[str, object]:
        """Return column -> value of the summary's row."""
        return {name: getattr(self, name) for name in COLUMNS}


COLUMNS = tuple(name for name in RecordSummary.__annotations__ if name != "useful")
