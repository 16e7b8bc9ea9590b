"""Instances of a session that end, are killed and return, in every order: one final state.

Every scenario runs in a model that is independent of the product, and in the product's plan,
handlers and reaper, with jobs in any order and twice.
"""

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hivepipe.errors import MissingParentError
from hivepipe.events import job_plan, parse_event
from hivepipe.events.job_plan import Job, Message
from hivepipe.hook.alive import Liveness
from hivepipe.jobs.args import Args
from hivepipe.jobs.envelope import Envelope, follow_ups, read_envelope
from hivepipe.operations import reaper, session_end
from hivepipe.operations.declared import slow_queue
from hivepipe.operations.families.sessions import ConcludeSession
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.registry import execute
from tests.payloads import CWD, SESSION, TRANSCRIPT
from tests.rounds import ASKED_ROUNDS, SEED
from tests.store_scene import apply, job_of, new_database

FIRST_NS = 1_790_000_000_000_000_000
# Longer than the window in which a doubled event is recognised by its bytes.
STEP_NS = 7_003_000_000
OTHER = "5e551011-0000-4000-8000-0000000000ff"
STEPS_OF_TWO = ("end A", "end B", "kill A", "kill B", "resume A", "event A", "event B", "clear B")
SHUFFLES = 4 if ASKED_ROUNDS >= 20 else 1

Step = str  # "<what> <instance>"


# ---- the model
@dataclass
class Model:
    """The state of a session after the steps so far."""

    inside: set[str] = field(default_factory=set)
    killed: set[str] = field(default_factory=set)
    ends: int = 0  # how often the last instance left

    def apply(self, step: Step) -> None:
        what, who = step.split()
        was_inside = who in self.inside
        if what in ("start", "resume", "event"):
            self.inside.add(who)
            self.killed.discard(who)
            return
        self.inside.discard(who)
        if what == "kill":
            self.killed.add(who)
        if was_inside and not self.inside:
            self.ends += 1

    @property
    def status(self) -> str:
        return "active" if self.inside else "ended"


def possible(steps: Sequence[Step]) -> bool:
    """Return whether the steps can happen: only instances inside end, the dead do nothing."""
    model = Model({"A", "B"})
    for step in steps:
        what, who = step.split()
        is_inside, is_dead = who in model.inside, who in model.killed
        if {
            "end": not is_inside,
            "clear": not is_inside,
            "resume": is_inside,
            "event": is_dead,
            "kill": is_dead,
        }[what]:
            return False
        model.apply(step)
    return True


# ---- the product
class Product:
    """The database of one home, and the jobs of its hooks."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.db = new_database(home / "hive.db")
        self.time_ns = FIRST_NS
        self.processes = {"A": "instance-a", "B": "instance-b", "C": "instance-c"}
        # Instance -> its session, and whether that has ended.
        self.marks: dict[str, tuple[str, bool]] = {}
        self.dead: set[str] = set()
        self.started = 0
        self.followed: Counter[str] = Counter()
        self.known: dict[str, None] = {}
        self.reaped: list[Message] = []
        self.waiting: list[Envelope] = []
        monkeypatch.setattr(reaper, "liveness_of", self._liveness)
        monkeypatch.setattr(reaper, "_enqueue", lambda _address, found: self.reaped.extend(found))

    def _liveness(self, row: Any, _machine: object) -> Liveness:
        gone = row["id"] in self.dead
        return Liveness(False, "process gone") if gone else Liveness(True)

    def messages(self, step: Step) -> list[Message]:
        """Return the jobs of the hook of this step; a kill has no hook."""
        what, who = step.split()
        self.time_ns += STEP_NS
        if what == "kill":
            self.dead.add(self.processes[who])
            return []
        if what == "resume":
            self.started += 1
            self.processes[who] = f"instance-{who.lower()}{self.started}"
        sent = self._fire(_EVENTS[what], self.processes[who])
        if what == "clear":
            self.time_ns += 1_000_000
            sent += self._fire(_EVENTS["start"] | {"session_id": OTHER}, self.processes[who])
        return sent

    def _fire(self, said: dict[str, Any], instance: str) -> list[Message]:
        payload = {"session_id": SESSION, "transcript_path": TRANSCRIPT, "cwd": CWD, **said}
        name, session = said["hook_event_name"], payload["session_id"]
        event = parse_event(name, json.dumps(payload).encode())
        assert event
        marked, has_ended = self.marks.get(instance, ("", False))
        context = job_plan.Context(
            event_time_ns=self.time_ns,
            session=session,
            own_session=session,
            instance=instance,
            enters_session=marked != session or (has_ended and name != "SessionEnd"),
            project=CWD,
            cwd=CWD,
            swarm="swarm-1",
            pid=1,
        )
        self.marks[instance] = (session, name == "SessionEnd")
        return job_plan.encode(job_plan.plan(event, context), event, context)

    def deliver(self, messages: Sequence[Message], *, is_all: bool = True) -> None:
        """Execute jobs in this order; jobs without their parent are retried after the others."""
        self.waiting += [read_envelope(message.envelope) for message in messages]
        for _ in range(50 if is_all else 1):
            self.waiting = [job for job in self.waiting if not self._execute(job)]
            if not self.waiting:
                return
        assert not is_all, f"no parent of {Counter(job.operation for job in self.waiting)}"

    def _execute(self, job: Envelope) -> bool:
        try:
            if slow_queue(job.operation) is None:
                with self.db.transaction():
                    execute(self.db, job)
            elif job.operation == "conclude_session":
                context = JobContext(str(self.home), "", self._follow)
                session_end.conclude_session(context, job, ConcludeSession.read(job.payload))
        except MissingParentError:
            return False
        return True

    def _follow(self, parent: Envelope, follows: list[Job]) -> None:
        """Accept follow-up jobs; Redis refuses an id that it had within a minute."""
        assert self.session(parent.session)["status"] == "ended"
        for message, job in zip(follow_ups(parent, follows), follows, strict=True):
            if message.id not in self.known:
                self.known[message.id] = None
                self.followed[f"{job.operation} {parent.session}"] += 1

    def reap(self, *, is_all: bool = True) -> None:
        """Run the reaper until it finds nothing more."""
        for turn in range(10):
            self.reaped.clear()
            self.time_ns += 120 * 10**9
            slot = job_of("reap_sessions", self.time_ns)
            reaper.reap_sessions(JobContext(str(self.home), "", self._follow), slot, Args())
            if not self.reaped:
                assert turn < 5
                return
            self.deliver(list(self.reaped), is_all=is_all)

    def session(self, id: str = SESSION) -> dict[str, Any]:
        (row,) = self.db.rows("SELECT * FROM sessions WHERE id = :id", {"id": id})
        return dict(row)

    def inside(self) -> set[str]:
        sql = (
            "SELECT instance_id FROM instance_sessions WHERE session_id = :id AND status = 'active'"
        )
        return {row["instance_id"] for row in self.db.rows(sql, {"id": SESSION})}


_EVENTS: dict[str, dict[str, Any]] = {
    "start": {"hook_event_name": "SessionStart", "source": "startup"},
    "resume": {"hook_event_name": "SessionStart", "source": "resume"},
    "end": {"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"},
    "clear": {"hook_event_name": "SessionEnd", "reason": "clear"},
    "event": {"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {}},
}


@pytest.fixture
def product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator["Products"]:
    made = Products(tmp_path, monkeypatch)
    yield made
    made.close()


class Products:
    """Makes a new product for each order."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        self._made: list[Product] = []

    def new(self) -> Product:
        home = self._folder / str(len(self._made))
        home.mkdir()
        self._made.append(Product(home, self._monkeypatch))
        return self._made[-1]

    def close(self) -> None:
        for product in self._made:
            product.db.close()


def scenarios(count: int) -> list[tuple[Step, ...]]:
    """Return every possible order of a number of steps, after both instances started."""
    return [steps for steps in itertools.permutations(STEPS_OF_TWO, count) if possible(steps)]


def check_state(found: Product, model: Model, said: object) -> None:
    assert found.session()["status"] == model.status, said
    assert found.inside() == {found.processes[who] for who in model.inside}, said
    row = found.session()
    ended = row["status"] == "ended"
    assert (row["ended_at"] is not None, row["end_reason"] is not None) == (ended, ended), said


def test_every_order_of_ends_kills_and_returns_with_immediate_jobs(product: Products) -> None:
    """Each job arrives at once, and the reaper runs after every step.

    There is a scenario for each possible pair of first steps, or with more rounds every scenario.
    """
    chosen = scenarios(4)
    random.Random(SEED).shuffle(chosen)
    of_each_pair = [*{steps[:2]: steps for steps in chosen}.values()]
    for steps in chosen if SHUFFLES > 1 else of_each_pair:
        found, model = product.new(), Model()
        for step in ("start A", "start B", *steps):
            model.apply(step)
            found.deliver(found.messages(step))
            found.reap()
            check_state(found, model, (steps, step))
            summaries = found.followed[f"archive_transcript {SESSION}"]
            assert summaries == model.ends, (steps, step)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_jobs_that_arrive_shuffled_and_twice_give_the_same_state(
    product: Products, count: int
) -> None:
    chosen = scenarios(count)
    rng = random.Random(SEED + count)
    for steps in rng.sample(chosen, min(len(chosen), 8 * SHUFFLES)):
        in_order, model = product.new(), Model()
        for step in ("start A", "start B", *steps):
            model.apply(step)
            in_order.deliver(in_order.messages(step))
        in_order.reap()
        check_state(in_order, model, steps)
        shuffled = product.new()
        sent = [m for step in ("start A", "start B", *steps) for m in shuffled.messages(step)]
        order = [*sent, *sent]
        rng.shuffle(order)
        cut = rng.randrange(len(order))
        shuffled.deliver(order[:cut], is_all=False)
        if cut % 2 and shuffled.db.row("SELECT 1 FROM sessions", {}):
            shuffled.reap(is_all=False)
        shuffled.deliver(order[cut:])
        shuffled.reap()
        check_state(shuffled, model, steps)
        for column in ("status", "ended_at", "end_reason", "paused_at", "turn"):
            assert shuffled.session()[column] == in_order.session()[column], (steps, column)


@pytest.mark.parametrize("order", [("end A", "end B", "end C"), ("end C", "end B", "end A")])
def test_follow_ups_of_three_ended_instances_run_once(
    product: Products, order: tuple[Step, ...]
) -> None:
    """The order of the events and the order in which their jobs arrive do not matter."""
    for arrival in itertools.permutations(range(3)):
        found = product.new()
        for who in "ABC":
            found.deliver(found.messages(f"start {who}"))
        sent = [found.messages(step) for step in order]
        for number, index in enumerate(arrival):
            assert not found.followed, "while an instance is in it nothing follows"
            found.deliver([*sent[index], *sent[index]])
            is_last = number == 2
            assert found.session()["status"] == ("ended" if is_last else "active")
        assert found.followed == {
            f"archive_transcript {SESSION}": 1,
            f"finish_process {SESSION}": 1,
        }


def test_a_process_that_continues_elsewhere_is_not_cleaned_up(product: Products) -> None:
    found = product.new()
    for step in ("start A", "clear A"):
        found.deliver(found.messages(step))
    assert found.session()["end_reason"] == "clear"
    assert found.followed == {f"archive_transcript {SESSION}": 1}


def test_an_exit_before_another_instance_clears_is_cleaned_up_after(product: Products) -> None:
    found = product.new()
    for step in ("start A", "start B", "end A", "clear B"):
        found.deliver(found.messages(step))
    assert found.session()["end_reason"] == "clear"
    assert found.followed[f"finish_process {SESSION}"] == 1


def test_the_reaper_finds_an_end_without_its_follow_up(product: Products) -> None:
    """B ends while A, which was killed, still counts. Then A's loss is recorded without an end."""
    found = product.new()
    for step in ("start A", "start B", "kill A", "end B"):
        found.deliver(found.messages(step))
    assert found.session()["status"] == "active"
    assert found._execute(job_of("lose_instance", found.time_ns, instance="instance-a"))
    assert found.session()["status"] == "ended"
    assert not found.followed
    found.reap()
    assert found.followed[f"archive_transcript {SESSION}"] == 1
    found.reap()
    assert found.followed[f"archive_transcript {SESSION}"] == 1


def test_the_migration_leaves_ended_sessions_ended(tmp_path: Path) -> None:
    """Ended sessions of 1.0 are concluded; an event reopens one."""
    with closing(new_database(tmp_path / "hive.db")) as db:
        db.execute(
            """INSERT INTO sessions (id, status, turn, state_time_ns, last_end_ns, concluded_ns)
               VALUES (:id, 'ended', 'active', 41, 42, 42)""",
            {"id": SESSION},
        )
        apply(db, "activate_session", FIRST_NS, session=SESSION)
        row = db.row("SELECT status, ended_at FROM sessions", {})
        assert row is not None
        assert tuple(row) == ("active", None)
