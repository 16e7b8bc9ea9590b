"""The origin of a change: the job that makes it, and the event behind the job."""

from dataclasses import dataclass

from hivepipe.times import stored_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The values that every row may keep of its job; `session` is "" if there is none.

    `agent`: the subagent that the event came from, "" for Claude. `periodic`: the row of the
    schedule that asked for the job, with its slot, if it has one.
    """

    id: str
    operation: str
    event_time_ns: int
    session: str = ""
    instance: str = ""
    project: str = ""
    agent: str = ""
    periodic: str = ""
    slot: int | None = None

    @property
    def time(self) -> str:
        """Return the time of the event in the form of stored times."""
        return stored_time(self.event_time_ns)
