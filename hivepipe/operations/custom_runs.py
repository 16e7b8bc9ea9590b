"""Run operations of installed packages: the jobs that an event causes, and their handler."""

import json
import time
from collections.abc import Callable
from typing import Any

from hivepipe.errors import OperationFailedError
from hivepipe.events.job_plan import Job
from hivepipe.jobs.envelope import Envelope
from hivepipe.jobs.origin import Origin
from hivepipe.operations.custom import EVENTS, Declaration, installed_names
from hivepipe.operations.families.custom import RunCustom
from hivepipe.operations.forgotten_sessions import is_forgotten
from hivepipe.operations.job_context import JobContext
from hivepipe.programs import Child, module, running
from hivepipe.redact import redact_text
from hivepipe.redact.fields import redact_fields
from hivepipe.settings import inherited

LOAD_SECS = 30.0  # time limit for the import of the package
REASON_CHARACTERS = 300


def custom_jobs(job: Envelope) -> list[Job]:
    """Return the jobs of installed operations for the event that `job` belongs to."""
    event = EVENTS.get(job.operation, "")
    names = installed_names() if event else ()
    data = redact_fields(job.payload) if names else {}
    return [RunCustom(name=name, event=event, data=data).job(name) for name in names]


def run_custom(context: JobContext, job: Origin, args: RunCustom) -> None:
    """Call the operation's function in a new process. Raise OperationFailedError or StoppedError.

    The function is not called for a forgotten session.
    """
    if is_forgotten(context.home, job.session):
        return
    event = {
        "id": job.id,
        "event": args.event,
        "session": job.session,
        "project": job.project,
        "time": job.time,
        "data": args.data,
    }
    _run(args.name, event, context.check_stop)


def declaration_by(name: str) -> Declaration:
    """Return an operation's declaration, loaded in a process. May raise OperationFailedError."""
    return _run(name, None, lambda: None)


def _run(name: str, event: dict[str, Any] | None, check_stop: Callable[[], None]) -> Declaration:
    """Run `custom_child`; return the declaration. `check_stop` raises an exception to end it.

    Raise OperationFailedError if the function fails, or the child cannot load it or is too slow.
    """
    words = module("hivepipe.operations.custom_child")
    request = json.dumps({"name": name, "event": event}).encode()
    declaration: Declaration | None = None
    limit_secs, started = LOAD_SECS, time.monotonic()
    with running(words, request, env=inherited()) as child:
        while not child.has_ended():
            check_stop()
            if declaration is None and (declaration := _declared(child.output)):
                limit_secs, started = declaration.timeout_secs, time.monotonic()
            if time.monotonic() - started > limit_secs:
                what = "did not end" if declaration else "could not be loaded"
                raise _failure(name, f"{what} within {limit_secs:g} s", declaration)
        declaration = _declared(child.output)
        if child.code or declaration is None:
            raise _failure(name, _last_words(child), declaration)
    return declaration


def _declared(output: bytes) -> Declaration | None:
    """Return the declaration in the output of `custom_child`, or None while it is incomplete."""
    if not output.endswith(b"\n"):
        return None
    fields = json.loads(output)
    return Declaration(tuple(fields["on"]), fields["retries"], fields["timeout_secs"])


def _last_words(child: Child) -> str:
    """Return the last line of a failed process's stderr, or else its exit code or signal."""
    code = child.code or 0
    text = redact_text(child.errors.decode("utf-8", "replace")).strip()
    ended = f"signal {-code}" if code < 0 else f"exit code {code}"
    return (text.splitlines() or [ended])[-1]


def _failure(name: str, reason: str, declaration: Declaration | None) -> OperationFailedError:
    retries = declaration.retries if declaration else 0
    return OperationFailedError(f"{name}: {reason[:REASON_CHARACTERS]}", retries)
