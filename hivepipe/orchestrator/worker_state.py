"""Derive the state of a worker from its status.json, its process and its last activity."""

import time
from typing import NamedTuple

from hivepipe.alerts.rules import WAITING_WORKERS
from hivepipe.orchestrator.plain_file import changed_ns
from hivepipe.orchestrator.run import Run
from hivepipe.orchestrator.status import Status
from hivepipe.orchestrator.worker import Worker
from hivepipe.orchestrator.worker_signals import WorkerSignals

# State -> the words after a number of workers. Those that need a person's action come first.
MEANINGS = {
    **WAITING_WORKERS,
    "working": "working",
    "parking": "writing down what was learned",
    "cancelled": "cancelled",
    "done": "done",
    "unknown": "unknown",
}
ORDER = tuple(MEANINGS)
OVER = ("died", "ended")  # states of a worker whose process ended without a final status
_NOT_CANCELLED = ("not started", "done", "unknown")


class CheckedWorker(NamedTuple):
    """One worker as `check` shows it."""

    worker: Worker
    state: str  # one of ORDER
    note: str  # the reason, progress, question or result
    status: Status
    run: Run | None
    last_active_ns: int  # time of the last activity, or 0
    lives: bool | None
    foreign_pid: int = 0  # pid of a process on the session that hivepipe did not start, or 0


def check_worker(worker: Worker, stale_secs: float, signals: WorkerSignals) -> CheckedWorker:
    """Return the state of one worker without changing anything."""
    status, run = worker.status(), worker.last_run()
    lives = run.is_at_work() if run else False
    foreign_pid = 0 if lives else signals.foreign.of(worker)
    last_active_ns = max(_last_active_ns(worker, status, run), signals.heartbeat_ns(worker))
    silent_secs = time.time() - last_active_ns / 1e9 if last_active_ns else 0
    is_silent = silent_secs >= stale_secs
    if foreign_pid:
        state, note = _of_foreign_process(status, run, is_silent, foreign_pid)
        return CheckedWorker(worker, state, note, status, run, last_active_ns, True, foreign_pid)
    state, note = _state(status, run, lives, is_silent)
    if lives and run and not worker.folder.is_dir():
        state, note = "error", f"its folder was removed, its process {run.pid} still runs"
    may_be_cancelled = lives is False and state not in _NOT_CANCELLED
    if may_be_cancelled and (cancellation := signals.cancellation(worker)):
        state, note = "cancelled", cancellation
    return CheckedWorker(worker, state, note, status, run, last_active_ns, lives)


def _last_active_ns(worker: Worker, status: Status, run: Run | None) -> int:
    """Return the latest of three times: of the status, the transcript and the start of the run."""
    grown_ns = changed_ns(worker.transcript)
    return max(status.reported_ns, grown_ns, run.started_ns if run else 0)


def _state(status: Status, run: Run | None, lives: bool | None, is_silent: bool) -> tuple[str, str]:
    if run is None:
        return _of_other(status)
    if not run.is_started:
        trouble = run.trouble or "its process was never started"
        return ("working", "starting") if lives else ("not started", trouble)
    if lives is None:
        return (status.word or "unknown"), f"runs on {run.machine.partition(' ')[0]}"
    answered = is_answered(status, run)
    word = "" if answered else status.word
    if lives:
        return _of_living(status, run, word, is_silent)
    if word and word != "working":
        return word, _words(status)
    if not word and status.problems and not answered:
        return "broken", "; ".join(status.problems)
    if run.exit_code == 0 and run.outcome == "success":
        return "ended", f"it wrote no status.json; its last words: {run.words}"
    return "died", ending(run)


def is_answered(status: Status, run: Run) -> bool:
    """Tell whether a run began after the status was written; runs that only park do not count."""
    return run.kind != "park" and 0 < status.changed_ns < run.started_ns


def _of_foreign_process(
    status: Status, run: Run | None, is_silent: bool, pid: int
) -> tuple[str, str]:
    """Return state and note of a worker whose session a foreign process uses."""
    word = "" if run and is_answered(status, run) else status.word
    if word not in ("", "working"):
        return word, _words(status)
    by = f"process {pid}, not started by hivepipe"
    words = _words(status) if word or status.problems else ""
    return ("stale" if is_silent else "working"), _joined(words, by)


def _of_other(status: Status) -> tuple[str, str]:
    """Return state and note of a worker without a run, from its status.json alone."""
    if not status.word:
        return "unknown", _words(status) or "No status yet"
    if status.word == "working":
        return "unknown", _joined(_words(status), "none of its processes runs here")
    return status.word, _words(status)


def _of_living(status: Status, run: Run, word: str, is_silent: bool) -> tuple[str, str]:
    if run.kind == "park":
        return "parking", "writes down what it learned"
    if word in ("", "working"):
        words = _words(status) if word or status.problems else ""
        return ("stale", "silent, its process runs") if is_silent else ("working", words)
    return word, _words(status)


def has_final_status(status: Status, run: Run) -> bool:
    """Tell whether a worker wrote a final status in this run."""
    return status.word not in ("", "working") and status.changed_ns >= run.started_ns


def ending(run: Run) -> str:
    """Return a text that describes how a run ended."""
    if run.trouble:
        return run.trouble
    if run.is_lost or not run.has_ended:
        return "its process ended unobserved"
    how = f"ended with exit code {run.exit_code}"
    if run.exit_code is not None and run.exit_code < 0:
        how = f"was killed by signal {-run.exit_code}"
    result = ": ".join(filter(None, (run.outcome, run.words)))
    return how + (f", last result: {result}" if result else "")


# Status word -> the field of status.json that explains it.
_EXPLAINING_FIELDS = {
    "working": "progress",
    "need_input": "question",
    "done": "result",
    "error": "error",
    "context_full": "remaining",
}


def _words(status: Status) -> str:
    return _joined(status.text(_EXPLAINING_FIELDS.get(status.word, "")), *status.problems)


def _joined(*texts: str) -> str:
    return "; ".join(filter(None, texts))
