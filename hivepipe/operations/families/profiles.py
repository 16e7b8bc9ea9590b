"""Operations of profiles: their sessions, the versions of their identity files, their memories."""

from hivepipe.jobs.args import Args, Id
from hivepipe.queue.names import SLOW


class EnterProfile(Args, handler="profiles.enter_profile"):
    """Record that a session belongs to a profile."""

    profile_id: Id
    folder: str = ""
    swarm: str = ""


class SyncProfile(Args, handler="process_end.sync_profile", queue=SLOW):
    """Synchronise the files of a profile when one of its sessions starts."""

    profile_id: Id
    folder: str = ""


class SyncIdentity(Args, handler="profiles.sync_identity"):
    """Store one identity file; `snapshot` is the name of the copy that was made of it."""

    profile_id: Id
    folder: str = ""
    name: str
    snapshot: Id
    source: str


class FinishProcess(Args, handler="process_end.finish_process", priority=5, queue=SLOW):
    """Clean up after the end of a session's process."""


class IndexMemory(Args, handler="memory.index_memory", queue=SLOW):
    """Index the memory files of a session; `folders` is a text with one folder per line."""

    folders: str = ""
    swarm: str = ""
    profile_id: str = ""
    profile_folder: str = ""


class RecordRecall(Args, handler="recall.record_recall"):
    """Record the memories that a prompt recalled; each has `name` and `text`."""

    memories: list[dict[str, str]]
