"""RQ's command line, restricted: it runs no code that a job names.

`rq info` and `rq requeue` unpickle `meta` with any serializer, and the cleanup of a registry calls
the failure callback that a job names. If the restriction refuses to load data, RQ shows the job
without this data.
"""

import io
from collections.abc import Callable, Sequence
from typing import Any

import rq.job
from redis.exceptions import RedisError
from rq.cli.cli import main
from rq.serializers import DefaultSerializer
from rq.utils import import_attribute

from hivepipe.errors import StackError
from hivepipe.queue.client import FUNCTION
from hivepipe.queue.connection import url
from hivepipe.queue.job_data import PlainUnpickler


def run(address: str, arguments: Sequence[str]) -> int:
    """Restrict this process and run RQ's command line in it; return the exit code.

    Raise StackError if Redis does not answer.
    """
    restrict()
    # -u comes right after the command: click uses the last -u, which may be the user's.
    given = list(arguments)
    if given and not given[0].startswith("-"):
        given[1:1] = ["-u", url(address)]
    try:
        code = main.main(given, prog_name="hivepipe rq", standalone_mode=False)
    except RedisError as error:
        raise StackError(f"Redis does not answer ({error}): run `hivepipe up`") from error
    return code if isinstance(code, int) else 0


def restrict() -> None:
    """In this process, replace the functions of RQ that load or call code named by a job."""
    # RQ looks up the attribute at each use, and the serializer named "pickle" is this class too.
    DefaultSerializer.loads = staticmethod(_loads)
    rq.job.import_attribute = _our_function  # type: ignore[attr-defined]
    # An exception would end `rq info` at the first such job. A webhook would send data.
    for method in ("execute_failure_callback", "send_webhooks"):
        setattr(rq.job.Job, method, _nothing)


def _loads(data: bytes) -> Any:
    return PlainUnpickler(io.BytesIO(data)).load()


def _our_function(name: str) -> Callable[..., Any]:
    if name != FUNCTION:
        raise ValueError(f"refused: a job names {name}")
    return import_attribute(name)


def _nothing(*_: object, **__: object) -> None:
    return None
