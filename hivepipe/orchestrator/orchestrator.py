"""The orchestrator's operations: spawn, resume, answer, park, respawn and check.

hive = find_hive(".", home)
worker = Orchestrator(hive).spawn("shop", "Fix the session timeout.")
Orchestrator(hive).check()
"""

import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from hivepipe.db import tasks
from hivepipe.errors import HiveError, StoreError
from hivepipe.events.claude_code import clean, valid_id
from hivepipe.orchestrator import command, projects, prompts, records, retire
from hivepipe.orchestrator.costs import record_lost_end
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.records import NO_STATES, opened
from hivepipe.orchestrator.rights import default_flags
from hivepipe.orchestrator.start import locked, start
from hivepipe.orchestrator.transcript import repair_transcript
from hivepipe.orchestrator.worker import LARGEST_TASK, Card, Worker
from hivepipe.orchestrator.worker_signals import WorkerSignals
from hivepipe.orchestrator.worker_state import CheckedWorker, check_worker, is_answered
from hivepipe.settings import number
from hivepipe.times import now

_START_SECS = 10.0
RECORD_SECS = 10.0  # how long a check waits for runners whose process has just ended
_LOOK_SECS = 0.05


class Orchestrator:
    """Operates on the workers of one hive; `troubles` collects errors that are not fatal."""

    def __init__(self, hive: Hive) -> None:
        """Set the hive; `troubles` begins with the notes from the hive's migration."""
        self.hive = hive
        self.troubles: list[str] = [*hive.notes]

    # ---- actions on workers

    def spawn(
        self,
        project: str,
        task: str,
        *,
        session: str = "",
        task_id: str = "",
        profile: str = "",
        flags: Iterable[str] | None = None,
        respawn_of: Worker | None = None,
    ) -> Worker:
        """Start a worker on a task and return it.

        `session` is a UUID that the caller chooses. A second spawn with the same UUID returns the
        first worker, so that a restarted orchestrator can repeat its calls. Raise HiveError with
        the reason if the worker was not started.
        """
        path = projects.folder_of(self.hive.projects_file, project)
        task = clean(task)
        if not task.strip():
            raise HiveError("the task is empty")
        if len(task.encode()) > LARGEST_TASK:
            raise HiveError("the task is larger than a megabyte: let it name a file instead")
        for kind, id in (("task", task_id), ("profile", profile)):
            if valid_id(id) != id:
                raise HiveError(f"{id!r} cannot be a {kind}'s id: letters, digits, '.', '_', '-'")
        command.claude()
        session = _uuid(session) if session else str(uuid.uuid4())
        worker = self.hive.new_worker(f"{project}-{session}")
        self._refuse_another(worker, session, None if respawn_of else task)
        before = respawn_of.card() if respawn_of else None
        card = Card(
            session=session,
            project=project,
            path=path,
            task_id=task_id or (before.task_id if before else worker.id),
            profile=profile or (before.profile if before else ""),
            flags=tuple(default_flags() if flags is None else flags),
            created_at=now()[0],
            respawn_of=respawn_of.id if respawn_of else "",
            respawns=before.respawns + 1 if before else 0,
        )
        if not _was_made(worker):
            self._make(worker, card, task)
        self._add_task(worker.card(), task)
        self._start_once(worker)
        self.record([worker])
        return worker

    def resume(self, worker: Worker, text: str, kind: str = "resume", after: int = 0) -> None:
        """Resume a worker's session with a message. Raise HiveError if a process uses the session.

        `after` is the number of the last run that the caller knows. Raise HiveError if the worker
        had another run after it; 0 skips this check.
        """
        self._go_on(worker, kind, text, partial(_had_another_run, worker, after))

    def answer(self, worker: Worker, text: str, option: int = 0) -> None:
        """Answer a worker's question by an option's number, a text or both, or raise HiveError."""
        checked = check_worker(
            worker, number("HIVEPIPE_HIVE_STALE_SECS"), WorkerSignals(self.hive.home, [worker])
        )
        if checked.state != "need_input":
            raise HiveError(f"{worker.id} has no open question: its state is {checked.state}")
        if option:
            options = checked.status.texts("options")
            if not 0 < option <= len(options):
                raise HiveError(f"{worker.id} gave {len(options)} options, and none is {option}")
            text = f"{options[option - 1]}\n{text}".strip()
        if not text.strip():
            raise HiveError("the answer is empty")
        text = prompts.ANSWER.format(text=text)
        self._go_on(worker, "answer", text, partial(_answered, worker, checked.status.digest))

    def park(self, worker: Worker, after: int = 0) -> None:
        """Resume a worker so that it writes down its learnings; for `after`, see `resume`.

        Raise HiveError as `resume` does.
        """
        self.resume(
            worker, self._prompt("park", worker, self._card_with_flags(worker)), "park", after
        )

    def respawn(self, worker: Worker) -> Worker:
        """Start a new worker on the same task, and return it.

        The old worker's progress is in the prompt. The new session id is derived from the old
        session id, so repeated calls start only one worker. Raise HiveError as `spawn` does.
        """
        card, status = self._card_with_flags(worker), worker.status()
        task = worker.task().rstrip()
        for name, called in (("progress", "What was done"), ("remaining", "What is left")):
            if text := status.text(name):
                task += f"\n\n# {called}, by the one before you\n\n{text}"
        return self.spawn(
            card.project,
            task,
            session=_successor(card),
            flags=card.flags,
            respawn_of=worker,
        )

    def has_successor(self, worker: Worker) -> bool:
        """Tell whether another worker has taken over this worker's task by a respawn.

        Raise HiveError if the worker's session or project is unknown.
        """
        card = self._card(worker)
        successor = self.hive.new_worker(f"{card.project}-{_successor(card)}")
        return _was_started(successor) or bool(records.ended_worker(self.hive, _successor(card)))

    # ---- checks

    def check(
        self, workers: Iterable[Worker] | None = None, *, deadline: float | None = None
    ) -> list[CheckedWorker]:
        """Check the given workers, or all workers, and return the results.

        Also record the ends of runs that their runners did not record, and update the store. The
        check waits for runners until `deadline` on the monotonic clock, by default ten seconds.
        """
        looked_at = list(self._all() if workers is None else workers)
        if deadline is None:
            deadline = time.monotonic() + RECORD_SECS
        for worker in looked_at:
            try:
                self._record_unrecorded_end(worker, deadline)
            except OSError as error:  # a fault of one folder must not hide the others
                self.troubles.append(f"{worker.id}: {error}")
        signals = WorkerSignals(self.hive.home, looked_at)
        checked_workers = [
            check_worker(worker, number("HIVEPIPE_HIVE_STALE_SECS"), signals)
            for worker in looked_at
        ]
        self.record(looked_at, {checked.worker.id: checked.state for checked in checked_workers})
        return checked_workers

    def record(self, workers: Iterable[Worker], states: Mapping[str, str] = NO_STATES) -> None:
        """Update workers' rows in the store; `states` is by worker id. Errors go to `troubles`."""
        try:
            records.record(self.hive, workers, states)
        except StoreError as error:
            self.troubles.append(
                f"workers are not stored: {error}; the next `hivepipe hive check` stores them"
            )

    # ---- internal

    def _go_on(self, worker: Worker, kind: str, text: str, may_start: Callable[[], str]) -> None:
        """Start a run of this `kind` on a worker's session; for `may_start`, see `start`."""
        start(self.hive, worker, self._card_with_flags(worker), kind, text, may_start=may_start)
        self.record([worker])

    def _all(self) -> list[Worker]:
        """Return all workers, including those with a running process but without a folder."""
        try:
            return [*self.hive.workers(), *retire.sync_moved_workers(self.hive)]
        except StoreError as error:
            self.troubles.append(str(error))
            return self.hive.workers()

    def _record_unrecorded_end(self, worker: Worker, deadline: float) -> None:
        """Record the end of a worker's last run if its runner is gone, else wait for the runner."""
        run = worker.last_run()
        if run is None or not run.has_unrecorded_end:
            return
        with suppress(HiveError), locked(worker, deadline - time.monotonic()):
            run = worker.last_run()
            if run and run.has_unrecorded_end:
                record_lost_end(worker, run)
                self._repair_transcript(worker, run.offset)

    def _make(self, worker: Worker, card: Card, task: str) -> None:
        try:
            worker.make(card, task)
        except OSError as error:  # an incomplete worker would stay listed
            for folder in (worker.state, worker.folder):
                shutil.rmtree(folder, ignore_errors=True)
            where = error.filename or worker.folder
            raise HiveError(f"{where}: {error.strerror}: nothing was started") from None

    def _repair_transcript(self, worker: Worker, since: int) -> None:
        try:
            repair_transcript(worker, since)
        except HiveError as error:
            self.troubles.append(str(error))

    def _refuse_another(self, worker: Worker, session: str, task: str | None) -> None:
        """Raise HiveError if another worker has or had the session, or the worker's task differs.

        The tasks are not compared if `task` is None.
        """
        others = [each for each in self.hive.workers() if each.id != worker.id]
        if other := next((each for each in others if each.card().session == session), None):
            raise HiveError(f"session {session} belongs to the worker {other.id}")
        if what := records.ended_worker(self.hive, session):
            raise HiveError(f"session {session}: {what}, so it cannot be started again")
        if task is not None and _was_made(worker) and worker.task().strip() != task.strip():
            raise HiveError(f"{worker.id} was spawned before, with another task")

    def _start_once(self, worker: Worker) -> None:
        """Start a worker's first run, unless another spawn with its session has started it."""
        already = "it was spawned before"
        card = worker.card()
        text = self._prompt("worker", worker, card)
        try:
            start(
                self.hive,
                worker,
                card,
                "spawn",
                text,
                may_start=lambda: already if _was_started(worker) else "",
                wait_secs=0,
            )
        except HiveError:
            if not _wait_for_start(worker):
                raise
            self.troubles.append(f"{worker.id}: {already}")

    def _prompt(self, name: str, worker: Worker, card: Card) -> str:
        terms = command.words(self.hive, worker, card)
        return prompts.prompt(self.hive.root / "prompts", name, terms)

    def _card(self, worker: Worker) -> Card:
        """Return a worker's card, the parameters of its spawn.

        If hivepipe did not start the worker, its project is looked up in the list of projects.
        Raise HiveError if the worker has no session, or its project is not in the list.
        """
        card = worker.card()
        if not card.session:
            raise HiveError(f"{worker.id} has no session-id: it cannot be resumed")
        if card.path:
            return card
        project = projects.project_of(worker.id, projects.read(self.hive.projects_file))
        path = projects.folder_of(self.hive.projects_file, project)
        return replace(card, project=project, path=path)

    def _card_with_flags(self, worker: Worker) -> Card:
        """Return a worker's card.

        If hivepipe did not start the worker, the card gets the user's default flags.
        """
        card = self._card(worker)
        return card if card.created_at else replace(card, flags=default_flags())

    def _add_task(self, card: Card, text: str) -> None:
        """Add a worker's task to the store. If a user cancels it, the guard stops the worker."""
        with suppress(StoreError), opened(self.hive.home) as db, db.transaction():
            tasks.add_task(db, card.task_id, text, card.created_at)


def _was_made(worker: Worker) -> bool:
    return bool(worker.card().created_at)


def _was_started(worker: Worker) -> bool:
    return any(run.is_started and not run.trouble for run in worker.runs())


def _answered(worker: Worker, question: str) -> str:
    """Return an error if the question was answered or replaced, or "" if it is still open."""
    status, run = worker.status(), worker.last_run()
    is_open = status.digest == question and not (run and is_answered(status, run))
    return "" if is_open else f"{worker.id} was answered"


def _had_another_run(worker: Worker, after: int) -> str:
    """Return an error if run number `after` is not the last run, else ""; 0 accepts any run."""
    run = worker.last_run()
    is_another = after and (run is None or run.number != after)
    return f"{worker.id} has had another run" if is_another else ""


def _wait_for_start(worker: Worker) -> bool:
    """Wait until another spawn has started the worker; return False on failure or timeout."""
    deadline = time.monotonic() + _START_SECS
    while not _was_started(worker):
        run = worker.last_run()
        if time.monotonic() > deadline or (run and (run.trouble or run.has_ended)):
            return False
        time.sleep(_LOOK_SECS)
    return True


def _successor(card: Card) -> str:
    return str(uuid.uuid5(uuid.UUID(_uuid(card.session)), "respawn"))


def _uuid(text: str) -> str:
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise HiveError(f"{text!r} is not a UUID, as a session's id must be") from None
