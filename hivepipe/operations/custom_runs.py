"""Run operations of installed packages: the jobs that an event causes, and their handler."""

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from hivepipe.errors import OperationFailedError
from hivepipe.events.job_plan import Job
from hivepipe.jobs.envelope import Envelope
from hivepipe.jobs.origin import Origin
from hivepipe.operations.custom import EVENTS, Declaration, installed_names
from hivepipe.operations.families.custom import RunCustom
from hivepipe.operations.forgotten_sessions import is_forgotten
from hivepipe.operations.job_context import JobContext
from hivepipe.programs import end_group
from hivepipe.redact import redact_text
from hivepipe.redact.fields import redact_fields
from hivepipe.settings import inherited

LOAD_SECS = 30.0  # to import the package
LOOK_EVERY_SECS = 0.1
REASON_BYTES = 2_000
REASON_CHARACTERS = 300


def custom_jobs(job: Envelope) -> list[Job]:
    """Return the jobs of installed operations that follow from a committed job."""
    event = EVENTS.get(job.operation, "")
    names = installed_names() if event else ()
    data = redact_fields(job.payload) if names else {}
    return [RunCustom(name=name, event=event, data=data).job(name) for name in names]


def run_custom(context: JobContext, job: Origin, args: RunCustom) -> None:
    """Call the operation's function in a process. Raise OperationFailedError or StoppedError.

    It is not called for a forgotten session.
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
    Run(args.name, event, context.check_stop).finish()


def declaration_by(name: str) -> Declaration:
    """Return the declaration of an operation, loaded in a process. Raise OperationFailedError."""
    return Run(name, None, lambda: None).finish()


class Run:
    """One process of `custom_child`. At the end it is killed with its children."""

    def __init__(
        self, name: str, event: dict[str, Any] | None, check_stop: Callable[[], None]
    ) -> None:
        """Start the process; `check_stop` raises an exception when the run must end."""
        self._name, self._check_stop = name, check_stop
        self._last = b""
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-m", "hivepipe.operations.custom_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=inherited(),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError), self._process.stdin as stdin:
            stdin.write(json.dumps({"name": name, "event": event}).encode())

    def finish(self) -> Declaration:
        """Wait for the end; return the declaration. Raise OperationFailedError if it failed."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        try:
            return self._wait(self._process.stdout, self._process.stderr)
        finally:
            end_group(self._process)

    def _wait(self, stdout: IO[bytes], stderr: IO[bytes]) -> Declaration:
        header = b""
        declaration: Declaration | None = None
        limit_secs, started = LOAD_SECS, time.monotonic()
        os.set_blocking(stdout.fileno(), False)
        os.set_blocking(stderr.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            selector.register(stderr, selectors.EVENT_READ)
            while True:
                self._check_stop()
                is_over = self._process.poll() is not None
                for key, _ in selector.select(0 if is_over else LOOK_EVERY_SECS):
                    chunk = os.read(key.fd, 1 << 16)
                    if not chunk:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is stderr:
                        self._last = (self._last + chunk)[-REASON_BYTES:]
                    else:
                        header += chunk
                if declaration is None and header.endswith(b"\n"):
                    declaration = _declaration(header)
                    limit_secs, started = declaration.timeout_secs, time.monotonic()
                if is_over:
                    return self._result(declaration)
                if time.monotonic() - started > limit_secs:
                    what = "did not end" if declaration else "could not be loaded"
                    self._fail(f"{what} within {limit_secs:g} s", declaration)

    def _result(self, declaration: Declaration | None) -> Declaration:
        code = self._process.returncode
        if code or declaration is None:
            text = redact_text(self._last.decode("utf-8", "replace")).strip()
            ended = f"signal {-code}" if code < 0 else f"exit code {code}"
            self._fail((text.splitlines() or [ended])[-1], declaration)
        assert declaration is not None
        return declaration

    def _fail(self, reason: str, declaration: Declaration | None) -> None:
        retries = declaration.retries if declaration else 0
        raise OperationFailedError(f"{self._name}: {reason[:REASON_CHARACTERS]}", retries)


def _declaration(header: bytes) -> Declaration:
    fields = json.loads(header)
    return Declaration(tuple(fields["on"]), fields["retries"], fields["timeout_secs"])
