"""The periodic operations without arguments. See the docstrings of the handlers."""

from types import new_class

from hivepipe.jobs.args import HERE, Args, Every
from hivepipe.queue.names import SLOW

DAY = 86_400  # seconds


def _declare(
    handler: str, priority: int, queue: str, secs: int, name: str, why: str, fallback_for: str = ""
) -> None:
    """Declare an operation; `secs` and the parameters after it are the fields of `Every`."""
    every = Every(secs, name, why, fallback_for)
    options = {"handler": handler, "priority": priority, "queue": queue, "every": every}
    new_class(handler, (Args,), options)


_declare("alerts.raise_alerts", 6, HERE, 60, "alerts", "no alert is raised")
_declare(
    "sweep.sweep_transcripts", 8, SLOW, DAY, "sweep", "transcripts without hooks are not archived"
)
_declare("sweep.compress_archives", 9, SLOW, DAY, "compress", "old archives are not compressed")
_declare("hive.check_hives", 6, SLOW, 60, "hives", "dead and silent hive workers seem busy")
_declare(
    "prune_files.prune_files", 9, SLOW, DAY, "prune_files", "archives and logs grow without limit"
)
_declare("prune.prune", 8, SLOW, DAY, "prune", "the database grows without limit")
_declare(
    "reaper.reap_sessions", 4, HERE, 60, "reaper", "sessions whose Claude Code was killed stay open"
)
_declare(
    "summaries.summarise_idle", 8, HERE, 600, "idle_summaries", "sessions left open have no summary"
)
_declare("upkeep.drop_dead_workers", 6, HERE, 30, "stale_workers", "killed workers stay listed")
_declare(
    "upkeep.promote_retries", 4, HERE, 5, "retries", "failed attempts are not retried", "writer"
)
_declare("upkeep.drain_spool", 4, HERE, 5, "spool", "events in the spool stay there", "writer")
_declare("upkeep.record_activity", 5, HERE, 10, "activity", "active sessions seem silent", "writer")
_declare(
    "upkeep.bring_back_strays", 6, HERE, 30, "strays", "jobs of killed workers stay lost", "writer"
)
_declare("upkeep.write_briefings", 8, HERE, 60, "briefings", "briefings are out of date", "writer")
_declare("upkeep.export_skills", 8, SLOW, 30, "exports", "skill-usage.json is out of date", "slow")
