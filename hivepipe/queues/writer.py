"""The plain writer: RQ's SimpleWorker over the three queues, leaving no text behind.

A stock `rq worker high medium low` executes the same jobs; what this one adds: a job's payload
leaves Redis the moment its work is done, not 60 s later, and retries come due without RQ's own
scheduler (an orphaned one swallows jobs).
"""

from redis import Redis
from rq import Queue, SimpleWorker
from rq.job import Job, JobStatus
from rq.registry import ScheduledJobRegistry

from hivepipe.jobs import ENVELOPE_VERSION, dumps
from hivepipe.queues.client import job_data
from hivepipe.queues.connection import QUEUES

# Atomic, and only while the job is there: a hash made anew would never expire.
_EMPTY = """
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], 'data', ARGV[1], 'description', ARGV[2])
end
"""


class Writer(SimpleWorker):
    """Executes jobs one by one in this process."""

    def __init__(self, connection: Redis) -> None:
        """Listen on high, medium and low, in this order."""
        super().__init__(
            [Queue(name, connection=connection) for name in QUEUES],
            connection=connection,
            default_worker_ttl=20,
            maintenance_interval=5,
            log_job_description=False,
        )
        self._empty = connection.register_script(_EMPTY)

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Execute one job; one that succeeded keeps its place in the lists, not its contents."""
        operation = (job.description or "").partition(" ")[0]
        super().execute_job(job, queue)
        if job.get_status() == JobStatus.FINISHED:
            done = dumps({"v": ENVELOPE_VERSION, "id": job.id, "operation": operation})
            self._empty(keys=[job.key], args=[job_data(done), operation])


def requeue_due(connection: Redis) -> int:
    """Put retries whose time has come back into their queues; return how many."""
    requeued = 0
    for name in QUEUES:
        queue = Queue(name, connection=connection)
        registry = ScheduledJobRegistry(queue=queue)  # type: ignore[no-untyped-call]
        for job_id in registry.get_jobs_to_schedule():
            job = Job.fetch(job_id, connection=connection)
            with connection.pipeline() as pipe:
                registry.remove(job, pipeline=pipe)
                queue._enqueue_job(job, pipeline=pipe)  # what RQ's own scheduler calls
                pipe.execute()
            requeued += 1
    return requeued
