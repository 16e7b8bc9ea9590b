"""Operations of sessions: start, activity, pause, end, checkpoints."""

from hivepipe.jobs.about_session import AboutSession
from hivepipe.jobs.args import HERE, Args
from hivepipe.jobs.schedule_table import CLEANUP_EVERY_CHECKPOINTS, PERIODIC_TRIGGER


class StartSession(AboutSession, handler="sessions.start_session"):
    """Record that a session starts, or continues, in a process on a host."""

    pid: int | None = None
    pid_started: str = ""
    host: str = ""
    boot: str = ""
    pid_space: str = ""
    swarm: str = ""


class ActivateSession(AboutSession, handler="sessions.activate_session"):
    """Record that a prompt opens a turn."""


class PauseSession(AboutSession, handler="sessions.pause_session"):
    """Record a turn's end; `error` and `said` are kind and text of an error that ended the turn."""

    error: str = ""
    said: str = ""
    background_tasks: int = 0


class EndSession(AboutSession, handler="sessions.end_session"):
    """Record that a session ends for one instance."""

    reason: str = ""

    def cleanup_cause(self) -> str:
        """Return the trigger of the cleanup after a session's end."""
        return "session_end"


class Checkpoint(Args):
    """A checkpoint, with the counts of its instance (None if unknown); `type` is auto or final."""

    trigger: str = ""
    file_path: str = ""
    op_count: int | None = None
    checkpoint_count: int | None = None
    type: str = ""


class UpdateCheckpoint(Checkpoint, handler="sessions.update_checkpoint"):
    """Save the checkpoint of a session."""


class UpdateInstance(Checkpoint, handler="sessions.update_instance"):
    """Save the totals of an instance."""

    def cleanup_cause(self) -> str:
        """Return the trigger of a cleanup at every tenth checkpoint of an instance, else ""."""
        count = self.checkpoint_count or 0
        return PERIODIC_TRIGGER if count > 0 and count % CLEANUP_EVERY_CHECKPOINTS == 0 else ""


class InsertLog(Checkpoint, handler="history.insert_log"):
    """Log an automatic checkpoint."""


class LoseInstance(Args, handler="sessions.lose_instance", priority=5, without_session=True):
    """Record that the process of an instance has ended."""


class ConcludeSession(Args, handler="session_end.conclude_session", queue=HERE):
    """Do the follow-up work of a session's end.

    `path` is the session's transcript. `claude` is the folder of Claude Code's files if it is not
    the default.
    """

    path: str = ""
    claude: str = ""
