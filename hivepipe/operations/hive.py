"""record_status stores a worker's status; check_hives checks all hives periodically."""

import logging
import time

from hivepipe.db import hive as store
from hivepipe.db.database import Database
from hivepipe.errors import HiveError
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.hives import RecordStatus
from hivepipe.operations.job_context import JobContext
from hivepipe.orchestrator import policy_steps
from hivepipe.orchestrator.command import unset_variables
from hivepipe.orchestrator.folder import Hive, known_hives
from hivepipe.orchestrator.orchestrator import RECORD_SECS, Orchestrator
from hivepipe.orchestrator.respawn_policy import Policy
from hivepipe.orchestrator.worker_state import CheckedWorker

LEAST_SECS = 0.5  # least time for a hive after others have used up the time of the check

logger = logging.getLogger("hivepipe.hive")


def record_status(db: Database, job: Origin, args: RecordStatus) -> None:
    """Store a status of a worker that `hive monitor` has read."""
    store.record_status(db, {"session_id": job.session, **args.payload()})


def check_hives(context: JobContext, _job: Origin, _args: Args) -> None:
    """Check the workers of all hives: record dead workers, and take the steps of `hive_policy`.

    The checks together wait about RECORD_SECS for runners whose process has ended. Errors of a hive
    or worker are logged.
    """
    policy, unset = Policy.of_settings(), unset_variables()
    obstacle = ""
    if unset and policy.mode != "report":  # without these settings no worker can be resumed
        obstacle = f"hive_policy is not followed: the stack has no {', '.join(unset)} (hive_env)"
        policy = policy._replace(mode="report")
    deadline = time.monotonic() + RECORD_SECS
    for hive in known_hives(context.home):
        context.check_stop()
        try:
            hive.migrated()
            least = time.monotonic() + LEAST_SECS  # the migration may wait for a lock
            _check(hive, policy, obstacle, max(deadline, least))
        except (HiveError, OSError) as error:  # go on with the other hives
            logger.warning("%s: %s", hive.root, error)


def _check(hive: Hive, policy: Policy, obstacle: str, deadline: float) -> None:
    orchestrator = Orchestrator(hive)
    for checked in orchestrator.check(deadline=deadline):
        try:
            step = policy_steps.take_next_step(orchestrator, checked, policy)
        except (HiveError, OSError) as error:  # go on with the other workers
            logger.warning("%s: %s", checked.worker.id, error)
            continue
        if step:
            logger.warning("%s: %s (%s)", checked.worker.id, step, _why(checked, obstacle))
    for trouble in orchestrator.troubles:
        logger.warning("%s", trouble)


def _why(checked: CheckedWorker, obstacle: str) -> str:
    state = f"{checked.state}: {checked.note}" if checked.note else checked.state
    return "; ".join(filter(None, (state, obstacle)))
