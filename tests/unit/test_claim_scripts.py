"""Each job is in exactly one place and the accounts are right, whatever a worker does.

Redis is fakeredis, whose Lua runs the real scripts.
"""

from collections import Counter

import fakeredis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivepipe.events.job_plan import Message
from hivepipe.queue.claims import Claimed, Claims, accounts
from hivepipe.queue.client import eval_command
from hivepipe.queue.names import ALL_QUEUES, QUEUES

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                *("enqueue", "enqueue", "claim", "claim", "done", "done", "retry", "hold"),
                *("retry_now", "fail", "move", "put_back", "renew", "die"),
            )
        ),
        st.sampled_from(QUEUES),
        st.integers(1, 12),
    ),
    max_size=60,
)


class Scenario:
    """A fake Redis, one worker's claims, and the jobs that the worker holds."""

    def __init__(self) -> None:
        self.redis = fakeredis.FakeRedis()
        self.claims = Claims(self.redis, QUEUES, "w", "rq:worker:w")
        self.held: list[Claimed] = []
        self.enqueued: list[str] = []
        self.ended: Counter[str] = Counter()

    def step(self, kind: str, queue: str, count: int) -> None:
        """Run one step. A step that needs a job takes the oldest one that is held."""
        if kind == "enqueue":
            self.enqueue(queue, count)
        elif kind == "claim":
            self.claim(count)
        elif kind == "retry_now":
            self.claims.retry_now()
        elif kind == "die":
            assert self.claims.recover("") == len(self.held)
            self.held.clear()
        elif self.held:
            self.finish(kind, self.held.pop(0), queue)

    def enqueue(self, queue: str, count: int) -> None:
        """Enqueue jobs as a hook does, each created a microsecond after the one before."""
        numbers = range(len(self.enqueued), len(self.enqueued) + count)
        messages = [
            Message(f"{n:032x}", "", queue, "a job", f"2026-11-21T01:00:00.{n:06}Z", "{}")
            for n in numbers
        ]
        self.redis.execute_command(*eval_command(messages))
        self.enqueued += [message.id for message in messages]

    def claim(self, count: int) -> None:
        jobs = self.claims.claim(count).jobs
        assert len(jobs) <= count
        assert not {job.id for job in jobs} & {job.id for job in self.held}
        self.held += jobs

    def finish(self, kind: str, job: Claimed, queue: str) -> None:
        if kind == "done":
            assert self.claims.acknowledge([(job, "an operation")]) == 1
            assert self.claims.acknowledge([(job, "an operation")]) == 0, "twice"
            self.ended[job.id] += 1
        elif kind in ("retry", "hold"):
            self.claims.retry([(job, queue, 30.0)], held_up=kind == "hold")
        elif kind == "fail":
            self.claims.fail([(job, "no use", job.data, "an operation")])
        elif kind == "move":
            self.claims.move([(job, "slow", float(len(self.held) % 2))])
        elif kind == "put_back":
            self.claims.put_back(job)
        else:
            self.claims.renew(job)
            self.held.append(job)

    def places(self) -> Counter[str]:
        """Return in how many places each unfinished job is."""
        found: Counter[str] = Counter()
        for queue in ALL_QUEUES:
            found.update(id.decode() for id in self.redis.lrange(f"rq:queue:{queue}", 0, -1))
            for state in ("wip", "scheduled", "failed"):
                members = self.redis.zrange(f"rq:{state}:{queue}", 0, -1)
                found.update(member.decode().partition(":")[0] for member in members)
        return found


@settings(max_examples=30, deadline=None)
@given(STEPS)
def test_each_job_is_in_one_place_once(steps: list[tuple[str, str, int]]) -> None:
    scenario = Scenario()
    for kind, queue, count in steps:
        scenario.step(kind, queue, count)
        assert scenario.places() + scenario.ended == Counter(scenario.enqueued)
        found = accounts(scenario.redis)
        assert (found["accepted"], found["done"]) == (len(scenario.enqueued), len(scenario.ended))
        assert found["running"] == len(scenario.held)
        assert found["accepted"] == sum(found.values()) - found["accepted"]


def test_a_claim_takes_urgent_jobs_first_and_a_tenth_of_others() -> None:
    scenario = Scenario()
    for queue in reversed(QUEUES):
        scenario.enqueue(queue, 50)
    scenario.claim(20)
    assert Counter(job.queue for job in scenario.held) == {"high": 18, "low": 2}
    scenario.held.clear()
    scenario.claim(5)
    assert {job.queue for job in scenario.held} == {"high"}
    scenario = Scenario()
    scenario.enqueue("medium", 5)
    scenario.claim(3)
    scenario.step("die", "", 0)
    scenario.claim(5)
    assert [job.id for job in scenario.held] == scenario.enqueued, "in order after a death"


@pytest.mark.parametrize("deaths", [1, 2, 3])
def test_a_job_that_kills_its_worker_runs_alone_and_fails_after_three_deaths(deaths: int) -> None:
    scenario = Scenario()
    scenario.enqueue("high", 3)
    for _ in range(deaths):
        scenario.claims.claim(3)
        scenario.claims.recover(scenario.enqueued[0])
    scenario.claim(3)
    is_dead = deaths == 3
    assert [job.id for job in scenario.held] == (
        scenario.enqueued[1:] if is_dead else scenario.enqueued[:1]
    )
    assert accounts(scenario.redis)["failed"] == is_dead
