"""The RQ workers registered in a Redis: alive, silent or dead."""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from redis import Redis

from hivepipe.programs import process_exists
from hivepipe.queue.names import ALL_QUEUES, LLM, QUEUES, SLOW
from hivepipe.queue.scripts import script
from hivepipe.times import age_secs

SILENT_SECS = 30.0  # our workers send a heartbeat every five seconds
STOCK_SILENT_SECS = 480.0  # the registration of a stock worker has expired by then
SETTLED_SECS = 60.0  # time that workers have to start, from the start of the first one

WRITER = "writer"
ROLE_FIELD = "hp_role"  # field in the hash of hivepipe's own workers; stock workers have none
_PREFIX = "rq:worker:"

_DROP = script("drop_worker")


class RqWorker(NamedTuple):
    """The registration of one worker; `heartbeat_secs` is None if only its name is left."""

    name: str
    queues: tuple[str, ...]
    state: str
    host: str
    pid: int
    heartbeat_secs: float | None
    age_secs: float
    executed: int
    failed: int
    role: str = ""  # "writer", "slow", "llm", or "" for a stock `rq worker`

    @property
    def is_alive(self) -> bool:
        """Tell whether the last heartbeat is recent enough.

        An idle stock worker sends none for minutes. So its limit is longer, and it is not alive if
        its process is known to have ended.
        """
        if self.heartbeat_secs is None:
            return False
        if self.role:
            return self.heartbeat_secs < SILENT_SECS
        return self.heartbeat_secs < STOCK_SILENT_SECS and not self.is_gone

    @property
    def is_gone(self) -> bool:
        """Tell whether the worker's process ran on this machine and no longer exists."""
        return bool(self.host == os.uname().nodename and self.pid and not process_exists(self.pid))


_FIELDS = (
    *("queues", "state", "hostname", "pid", "last_heartbeat", "birth"),
    *("successful_job_count", "failed_job_count", ROLE_FIELD),
)


def rq_workers(connection: Redis) -> list[RqWorker]:
    """Return all registered workers, sorted by queues and name."""
    listed: Any = connection.smembers("rq:workers")
    keys = sorted(listed)
    pipe = connection.pipeline(transaction=False)
    for key in keys:
        pipe.hmget(key, *_FIELDS)
    found = [_worker(key, values) for key, values in zip(keys, pipe.execute(), strict=True)]
    return sorted(found, key=lambda worker: (worker.queues, worker.name))


def _worker(key: bytes, values: list[bytes | None]) -> RqWorker:
    texts = [(value or b"").decode("utf-8", "replace") for value in values]
    queues, state, host, pid, heartbeat, birth, executed, failed, role = texts
    return RqWorker(
        name=key.decode("utf-8", "replace").removeprefix(_PREFIX),
        queues=tuple(queues.split(",")) if queues else (),
        state=state,
        host=host,
        pid=_number(pid),
        heartbeat_secs=age_secs(heartbeat),
        age_secs=age_secs(birth) or 0.0,
        executed=_number(executed),
        failed=_number(failed),
        role=role,
    )


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def unserved(workers: list[RqWorker], waiting: Mapping[str, int]) -> tuple[str, ...]:
    """Return the queues without a live worker, or () if the workers may still be starting."""
    return missing_queues(workers, waiting) if have_settled(workers) else ()


def missing_queues(workers: list[RqWorker], waiting: Mapping[str, int]) -> tuple[str, ...]:
    """Return the queues that need a worker and have no live worker."""
    alive = [worker for worker in workers if worker.is_alive]
    served = {queue for worker in alive for queue in worker.queues}
    needed = needed_queues(workers, waiting)
    return tuple(queue for queue in needed if queue not in served)


def needed_queues(workers: list[RqWorker], waiting: Mapping[str, int]) -> tuple[str, ...]:
    """Return the queues that need a worker.

    Stock workers move no job to `slow` and `llm`. Without a writer, these two queues need a worker
    only while they hold jobs that a writer moved there.
    """
    if only_stock(workers):
        return (*QUEUES, *(queue for queue in (SLOW, LLM) if waiting.get(queue)))
    return ALL_QUEUES


def only_stock(workers: list[RqWorker]) -> bool:
    """Tell whether stock workers serve the writer's queues and no writer is alive."""
    return WRITER not in living_roles(workers) and any(
        worker.is_alive and not worker.role and set(worker.queues) & set(QUEUES)
        for worker in workers
    )


def living_roles(workers: list[RqWorker]) -> set[str]:
    """Return the roles of hivepipe's own workers that are alive."""
    return {worker.role for worker in workers if worker.is_alive and worker.role}


def have_settled(workers: list[RqWorker]) -> bool:
    """Tell whether the oldest worker has run so long that all others have had time to start."""
    return any(worker.age_secs > SETTLED_SECS for worker in workers)


def drop_dead(connection: Redis) -> list[tuple[str, str]]:
    """Remove the registrations of dead workers; return their names and the reasons.

    The jobs of a dead worker are requeued when their leases end, or when a new worker starts.
    """
    dead = []
    for worker in rq_workers(connection):
        if worker.heartbeat_secs is None:
            reason = "its registration expired"
        elif worker.is_gone:
            reason = f"process {worker.pid} has ended"
        else:
            continue
        connection.eval(_DROP, 0, f"{_PREFIX}{worker.name}", *(worker.queues or ALL_QUEUES))
        dead.append((worker.name, reason))
    return dead
