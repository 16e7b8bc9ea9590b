"""The throttle: one checkpoint per instance and interval, and exact totals in every order."""

import multiprocessing
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hivepipe.events.job_plan import Count
from hivepipe.hook import throttle
from hivepipe.hook.throttle import count_operation, report_totals
from tests.rounds import ASKED_ROUNDS, SEED

SEC = 10**9
INTERVAL = 60 * SEC
T0 = 1_795_222_800 * SEC
NOW = T0 + 86_400 * SEC
SESSION = "s1"
ORDERS = 5_000 if ASKED_ROUNDS else 500


def count(
    path: Path, event: str, at: int = T0, interval: int = INTERVAL, session: str = SESSION
) -> Count:
    return count_operation(str(path), session, (event.encode(), b""), at, interval)


def report(path: Path, session: str = SESSION, at: int = 0) -> Count:
    return report_totals(str(path), session, at)


def values(answer: Count) -> tuple[bool, int | None, int | None]:
    return answer.due, answer.operations, answer.checkpoints


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(time, "time_ns", lambda: NOW)
    return tmp_path / "instances" / "i1.checkpoint"


def test_the_first_operation_is_due_and_only_the_user_can_read_the_file(path: Path) -> None:
    assert values(count(path, "a")) == (True, 1, 1)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("elapsed", "due"), [(0, False), (INTERVAL - 1, False), (INTERVAL, True)])
def test_an_operation_is_due_once_the_interval_has_passed(
    path: Path, elapsed: int, due: bool
) -> None:
    count(path, "a")
    assert values(count(path, "b", T0 + elapsed)) == (due, 2, 1 + due)


def test_the_interval_runs_from_the_last_checkpoint_not_from_the_last_operation(path: Path) -> None:
    due = [count(path, f"e{n}", T0 + n * 20 * SEC).due for n in range(7)]
    assert due == [True, False, False, True, False, False, True]


@pytest.mark.parametrize("elapsed", [0, INTERVAL, -1, -10 * INTERVAL])
def test_an_interval_of_zero_lets_every_operation_through(path: Path, elapsed: int) -> None:
    count(path, "a", interval=0)
    assert values(count(path, "b", T0 + elapsed, interval=0)) == (True, 2, 2)


def test_throttled_operations_are_counted_all_the_same(path: Path) -> None:
    answers = [values(count(path, f"e{n}", T0 + n)) for n in range(10)]
    assert answers == [(n == 1, n, 1) for n in range(1, 11)]
    assert values(count(path, "later", T0 + INTERVAL)) == (True, 11, 2)


@pytest.mark.parametrize("due", [True, False])
def test_a_doubled_event_counts_once_and_gets_the_same_answer(path: Path, due: bool) -> None:
    if not due:
        count(path, "before")
    first = values(count(path, "a", T0 + 1))
    assert first[0] is due
    assert values(count(path, "b", T0 + 2))[1] == (2 if due else 3)
    assert values(count(path, "a", T0 + 3)) == first
    assert values(count(path, "a", T0 + 2 * INTERVAL)) == first
    assert values(count(path, "c", T0 + 4))[1] == (3 if due else 4)


def test_an_event_is_doubled_if_it_has_the_name_it_had_a_window_before(path: Path) -> None:
    first = count_operation(str(path), SESSION, (b"window 1", b"window 0"), T0, INTERVAL)
    second = count_operation(str(path), SESSION, (b"window 2", b"window 1"), T0 + 1, INTERVAL)
    third = count_operation(str(path), SESSION, (b"window 3", b"window 2"), T0 + 2, INTERVAL)
    assert values(first) == values(second) == (True, 1, 1)
    assert third.operations == 2


def test_the_file_does_not_grow_for_ever(path: Path) -> None:
    for n in range(60):
        count(path, f"event {n}", T0 + n * INTERVAL, session=f"{1:0128d}:{n % 12:0128d}")
    size = path.stat().st_size
    for n in range(60, 120):
        count(path, f"event {n}", T0 + n * INTERVAL, session=f"{1:0128d}:{n % 12:0128d}")
    assert path.stat().st_size <= size + 64
    assert size < throttle._SIZE_BYTES
    assert count(path, "one more", T0 + 121 * INTERVAL).operations == 1


def test_totals_are_per_session_and_the_interval_is_per_instance(path: Path) -> None:
    assert values(report(path)) == (False, None, None)
    assert values(count(path, "a", T0, session="s1")) == (True, 1, 1)
    assert values(count(path, "b", T0 + 1, session="s2")) == (False, 1, 0)
    assert values(count(path, "c", T0 + 2, session="s1")) == (False, 2, 1)
    assert values(count(path, "d", T0 + 3, session="s3")) == (False, 1, 0)
    before = path.read_bytes()
    assert values(report(path, "s1")) == (False, 2, 1)
    assert values(report(path, "s2")) == values(report(path, "s3")) == (False, 1, 0)
    assert values(report(path, "another")) == (False, None, None)
    assert path.read_bytes() == before, "a report counts nothing"


DAMAGE = [
    *(b"", b"\n", b"\0" * 300, b"\xff\xfe garbage", b"{}" * 9000, b"\n" * 9000),
    *(b"t x\n", b"t\n", b"t 1 2 3 4 5\n", b"t " + b"9" * 6000 + b"\n"),
    *(b"s s1 1\n", b"s s1 a b\n", b"e 00 1 x y\n", b"e\n"),
]


def test_a_damaged_file_restarts_the_counts(path: Path) -> None:
    path.parent.mkdir()
    for damage in DAMAGE:
        path.write_bytes(damage)
        assert report(path).due is False
        assert values(count(path, "a", T0)) == (True, 1, 1), damage
        assert values(count(path, "b", T0 + 1)) == (False, 2, 1), damage


def test_a_file_cut_at_any_byte_is_readable(path: Path) -> None:
    for n in range(20):
        count(path, f"e{n}", T0 + n)
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        answer = count(path, "new", T0 + 100)
        assert answer.operations is not None
        assert 1 <= answer.operations <= 21
        assert values(count(path, "new", T0 + 100)) == values(answer)


def test_after_a_clock_was_set_back_the_throttle_works_again(path: Path) -> None:
    found = [count(path, "b", T0 + 5).due, count(path, "a", T0).due]
    assert found == [True, False], "two events in the wrong order make one checkpoint"
    back = T0 - 24 * 3600 * SEC
    due = [count(path, f"e{n}", back + n * 20 * SEC).due for n in range(4)]
    assert due == [True, False, False, True]


def test_a_report_from_before_a_clock_was_set_back_makes_nothing_due(path: Path) -> None:
    report(path, at=NOW + 3600 * SEC)
    assert [count(path, f"e{n}", T0 + n).due for n in range(3)] == [True, False, False]
    report(path, at=T0 + 9)
    assert count(path, "late", T0 + 5).due


@pytest.mark.parametrize("times", [f"t {T0}", f"t {T0} {T0}"])
def test_totals_of_an_earlier_version_continue_in_one_instance(path: Path, times: str) -> None:
    """As of a process that runs during an upgrade; 1.0.0 named only the session."""
    path.parent.mkdir()
    path.write_text(f"{times}\ns s1 50 4\ns s2 7 1\n")
    assert values(report(path, "i-1:s1", T0 + 1)) == (False, 50, 4)
    assert values(count(path, "a", T0 + 2, session="i-1:s1")) == (False, 51, 4)
    assert values(count(path, "b", T0 + 3, session="i-2:s1")) == (False, 1, 0)
    assert values(count(path, "c", T0 + 4, session="i-1:s1")) == (False, 52, 4)
    assert values(report(path, "i-1:s2", T0 + 5)) == (False, 7, 1)


def test_an_operation_that_is_counted_after_a_later_report_is_due(path: Path) -> None:
    assert values(report(path, at=T0 + 9)) == (False, None, None)
    assert values(count(path, "a", T0 + 1)) == (True, 1, 1)
    assert values(count(path, "b", T0 + 8)) == (True, 2, 2)
    assert values(count(path, "next turn", T0 + 10)) == (False, 3, 2)
    assert values(report(path, at=T0 + 5)) == (False, 3, 2), "the report of an earlier event"
    assert values(count(path, "c", T0 + 7)) == (True, 4, 3)


Step = tuple[str, int]  # the name of an operation, or "" for a report; the time of the event


def some_turns(rng: random.Random, most: int) -> list[Step]:
    """Return up to `most` operations, in turns that each end with a report, in order."""
    steps: list[Step] = []
    at = T0
    for _ in range(rng.randint(1, 3)):
        for _ in range(rng.randint(0, most // 3)):
            at += rng.choice((1, SEC, INTERVAL))
            steps.append((f"operation {len(steps)}", at))
        at += rng.choice((1, SEC))
        steps.append(("", at))
    return steps


def stored(path: Path, step: Step) -> int:
    """Process one event; return the total that the event stores, or 0."""
    event, at = step
    answer = count(path, event, at) if event else report(path, at=at)
    return answer.operations or 0 if answer.due or not event else 0


def test_the_stored_total_is_exact_in_every_order_of_the_events(path: Path) -> None:
    """Of an event that is processed twice, one result is lost with a killed process."""
    for seed in range(SEED, SEED + ORDERS):
        rng = random.Random(seed)
        steps = some_turns(rng, throttle.REMEMBERED_EVENTS)
        order = [*steps, *rng.sample(steps, rng.randint(0, len(steps)))]
        rng.shuffle(order)
        kept = {step: rng.choice([n for n, s in enumerate(order) if s == step]) for step in steps}
        totals = [stored(path, step) * (kept[step] == n) for n, step in enumerate(order)]
        assert max(totals) == sum(bool(event) for event, _ in steps), f"seed {seed}"
        path.unlink()


def test_the_stored_total_is_exact_if_processes_count_and_report_at_once(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    forking = multiprocessing.get_context("fork")
    rng = random.Random(SEED)
    for _ in range(5):
        steps = some_turns(rng, 60)
        wanted = sum(bool(event) for event, _ in steps)
        rng.shuffle(steps)
        start, totals = forking.Barrier(4), forking.Queue()

        def process(share: list[Step], start: Any = start, totals: Any = totals) -> None:
            start.wait()
            totals.put(max((stored(path, step) for step in share), default=0))

        started = [forking.Process(target=process, args=(steps[n::4],)) for n in range(4)]
        for each in started:
            each.start()
        assert max(totals.get(timeout=60) for _ in started) == wanted
        for each in started:
            each.join(60)
        path.unlink()


def test_without_a_writable_file_a_checkpoint_is_due_and_uncounted(
    path: Path, tmp_path: Path
) -> None:
    """A link is not followed."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    path.parent.mkdir()
    path.symlink_to(victim)
    assert values(count(path, "a")) == (True, None, None)
    assert values(report(path)) == (False, None, None)
    assert victim.read_text() == "precious"
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("a file where the folder should be")
    for event in ("a", "b"):
        assert values(count(path, event)) == (True, None, None)


def test_of_twenty_processes_at_once_one_is_due_and_the_total_is_exact(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    forking = multiprocessing.get_context("fork")
    start, answers = forking.Barrier(20), forking.Queue()

    def count_five(number: int) -> None:
        start.wait()
        for n in range(5):
            answers.put(values(count(path, f"event {number} {n}")))

    started = [forking.Process(target=count_five, args=(number,)) for number in range(20)]
    for process in started:
        process.start()
    found = [answers.get(timeout=60) for _ in range(100)]
    for process in started:
        process.join(60)
    assert {process.exitcode for process in started} == {0}
    assert sorted(operations for _, operations, _ in found) == list(range(1, 101))
    assert sum(due for due, _, _ in found) == 1
    assert values(report(path)) == (False, 100, 1)


HOLD = """
import fcntl, sys
held = open(sys.argv[1], "r+")
fcntl.lockf(held, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_that_is_never_released_is_not_waited_for(path: Path) -> None:
    count(path, "a")
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        began = time.monotonic()
        assert values(count(path, "b", T0 + 1)) == (True, None, None)
        assert time.monotonic() - began > 0.15, "the holder may wait 0.1 s for a CPU"
    finally:
        holder.communicate(timeout=60)
    assert values(count(path, "c", T0 + 2)) == (False, 2, 1)
