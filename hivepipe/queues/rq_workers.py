"""The RQ workers of a Redis: who lives, who is silent, who died without a word."""

import os
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

from redis import Redis

from hivepipe.queues.names import ALL_QUEUES, LLM, QUEUES, SLOW
from hivepipe.reductions import Reduction, reductions

SILENT_SECS = 30.0  # ours say a word every five
STOCK_SILENT_SECS = 480.0  # RQ's own: by then a worker's registration has lapsed
SETTLED_SECS = 60.0  # since the first worker came: by then all have

WRITER = "writer"
ROLE_FIELD = "hp_role"  # hivepipe's own workers have it in their hash, stock ones do not
_PREFIX = "rq:worker:"

# ARGV: the worker's key, then names of queues
_DROP = """
redis.call('SREM', 'rq:workers', ARGV[1])
for i = 2, #ARGV do redis.call('SREM', 'rq:workers:' .. ARGV[i], ARGV[1]) end
return redis.call('DEL', ARGV[1])
"""


class RqWorker(NamedTuple):
    """What one said of itself; `heartbeat_secs` None: nothing is left of it but its name."""

    name: str
    queues: tuple[str, ...]
    state: str
    host: str
    pid: int
    heartbeat_secs: float | None
    age_secs: float
    executed: int
    failed: int
    role: str = ""  # "writer", "slow", "llm"; empty: a stock `rq worker`

    @property
    def is_alive(self) -> bool:
        """Has it said a word of late? A stock worker that rests says none for minutes."""
        if self.heartbeat_secs is None:
            return False
        if self.role:
            return self.heartbeat_secs < SILENT_SECS
        return self.heartbeat_secs < STOCK_SILENT_SECS and not self.is_gone

    @property
    def is_gone(self) -> bool:
        """Was it a process of this machine that is no more?"""
        return bool(self.host == os.uname().nodename and self.pid and not _is_there(self.pid))


_FIELDS = (
    *("queues", "state", "hostname", "pid", "last_heartbeat", "birth"),
    *("successful_job_count", "failed_job_count", ROLE_FIELD),
)


def rq_workers(connection: Redis) -> list[RqWorker]:
    """Return all that are registered, by the queues they serve."""
    listed: Any = connection.smembers("rq:workers")
    keys = sorted(listed)
    pipe = connection.pipeline(transaction=False)
    for key in keys:
        pipe.hmget(key, *_FIELDS)
    found = [_worker(key, said) for key, said in zip(keys, pipe.execute(), strict=True)]
    return sorted(found, key=lambda worker: (worker.queues, worker.name))


def _worker(key: bytes, said: list[bytes | None]) -> RqWorker:
    texts = [(value or b"").decode("utf-8", "replace") for value in said]
    queues, state, host, pid, heartbeat, birth, executed, failed, role = texts
    return RqWorker(
        name=key.decode("utf-8", "replace").removeprefix(_PREFIX),
        queues=tuple(queues.split(",")) if queues else (),
        state=state,
        host=host,
        pid=_number(pid),
        heartbeat_secs=_age_secs(heartbeat),
        age_secs=_age_secs(birth) or 0.0,
        executed=_number(executed),
        failed=_number(failed),
        role=role,
    )


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _age_secs(at: str) -> float | None:
    try:
        return max(time.time() - datetime.fromisoformat(at).timestamp(), 0.0)
    except ValueError:
        return None


def unserved(workers: list[RqWorker], waiting: Mapping[str, int]) -> tuple[str, ...]:
    """Return the queues that no living worker serves; none while a stack is still starting."""
    return missing_queues(workers, waiting) if have_settled(workers) else ()


def missing_queues(workers: list[RqWorker], waiting: Mapping[str, int]) -> tuple[str, ...]:
    """Return the queues that need a worker and have none that lives."""
    alive = [worker for worker in workers if worker.is_alive]
    served = {queue for worker in alive for queue in worker.queues}
    needed = needed_queues(workers, waiting)
    return tuple(queue for queue in needed if queue not in served)


def needed_queues(workers: list[RqWorker], waiting: Mapping[str, int]) -> tuple[str, ...]:
    """Return the queues that need a worker.

    Stock workers hand nothing on to `slow` and `llm`; without a writer only what it left waits
    there.
    """
    if only_stock(workers):
        return (*QUEUES, *(queue for queue in (SLOW, LLM) if waiting.get(queue)))
    return ALL_QUEUES


def only_stock(workers: list[RqWorker]) -> bool:
    """Do workers of RQ's own serve the queues of the writer, and no writer?"""
    return WRITER not in living_roles(workers) and any(
        worker.is_alive and not worker.role and set(worker.queues) & set(QUEUES)
        for worker in workers
    )


def reductions_of(workers: list[RqWorker], clock_runs: bool) -> list[Reduction]:
    """Return what runs reduced with these workers; nothing where none lives at all."""
    if not any(worker.is_alive for worker in workers):
        return []
    return reductions(only_stock(workers), living_roles(workers), clock_runs)


def living_roles(workers: list[RqWorker]) -> set[str]:
    """Return which of hivepipe's own workers live."""
    return {worker.role for worker in workers if worker.is_alive and worker.role}


def have_settled(workers: list[RqWorker]) -> bool:
    """Has the stack run for so long that whoever is not there yet does not come?"""
    return any(worker.age_secs > SETTLED_SECS for worker in workers)


def drop_dead(connection: Redis) -> list[tuple[str, str]]:
    """Take out the workers that are gone without a word; return their names, and how that is known.

    What they held comes back by its lease, or when their successor starts.
    """
    dead = []
    for worker in rq_workers(connection):
        if worker.heartbeat_secs is None:
            reason = "nothing was heard for long"
        elif worker.is_gone:
            reason = f"process {worker.pid} is gone"
        else:
            continue
        connection.eval(_DROP, 0, f"{_PREFIX}{worker.name}", *(worker.queues or ALL_QUEUES))
        dead.append((worker.name, reason))
    return dead


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
