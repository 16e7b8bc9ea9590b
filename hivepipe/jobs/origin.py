"""The origin of a change: the job that makes it, and the event behind the job."""

from dataclasses import dataclass

from hivepipe.times import stored_time


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The values of a job that every row may store. `session` is "" for a job without a session.

    `agent` is the subagent that the event came from, or "" for the main conversation. `periodic`
    names the schedule's row that requested the job, and `slot` the slot of this run, if it has one.
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
        """Return the time of the event in the store's format."""
        return stored_time(self.event_time_ns)
