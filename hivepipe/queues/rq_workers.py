"""The RQ workers of a Redis: who lives, who is silent, who died without a word."""

import os
import time
from datetime import datetime
from typing import Any, NamedTuple

from redis import Redis

from hivepipe.queues.names import ALL_QUEUES

SILENT_SECS = 30.0  # ours say a word every five
SETTLED_SECS = 60.0  # since the first worker came: by then all have

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

    @property
    def is_alive(self) -> bool:
        """Has it said a word of late?"""
        return self.heartbeat_secs is not None and self.heartbeat_secs < SILENT_SECS


_FIELDS = (
    *("queues", "state", "hostname", "pid", "last_heartbeat", "birth"),
    *("successful_job_count", "failed_job_count"),
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
    queues, state, host, pid, heartbeat, birth, executed, failed = texts
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
    )


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _age_secs(at: str) -> float | None:
    try:
        return max(time.time() - datetime.fromisoformat(at).timestamp(), 0.0)
    except ValueError:
        return None


def unserved(workers: list[RqWorker]) -> tuple[str, ...]:
    """Return the queues that no living worker serves; none while a stack is still starting."""
    if not have_settled(workers):
        return ()
    served = {queue for worker in workers if worker.is_alive for queue in worker.queues}
    return tuple(queue for queue in ALL_QUEUES if queue not in served)


def have_settled(workers: list[RqWorker]) -> bool:
    """Has the stack run for so long that whoever is not there yet does not come?"""
    return any(worker.age_secs > SETTLED_SECS for worker in workers)


def drop_dead(connection: Redis) -> list[tuple[str, str]]:
    """Take out the workers that are gone without a word; return their names, and how that is known.

    What they held comes back by its lease, or when their successor starts.
    """
    host = os.uname().nodename
    dead = []
    for worker in rq_workers(connection):
        if worker.heartbeat_secs is None:
            reason = "nothing was heard for long"
        elif worker.host == host and worker.pid and not _is_there(worker.pid):
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
