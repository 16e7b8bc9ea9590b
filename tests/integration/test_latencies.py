"""Latencies from hook to row are counted per operation; `status` and the page agree."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import redis

from hivepipe.queue import latencies
from hivepipe.web.bar_chart import latency_bars


def finish(client: redis.Redis, id: str, took_secs: float, **fields: Any) -> None:
    """Add a finished job, which stays for a minute."""
    ended = datetime.now(UTC)
    times = {"created_at": ended - timedelta(seconds=took_secs), "ended_at": ended}
    stored_times = {name: f"{at:%Y-%m-%dT%H:%M:%S.%fZ}" for name, at in times.items()}
    client.hset(f"rq:job:{id}", mapping={"hp": "1", "description": "op", **stored_times, **fields})
    client.zadd("rq:finished:low", {id: time.time() + 60})


def test_percentiles_are_at_most_a_step_too_high(client: redis.Redis) -> None:
    for number in range(100):
        finish(client, f"job{number}", 0.010 if number < 98 else 4.0)
    latencies.add_sample(client)
    found = latencies.latencies(client).operations["op"]
    assert found.jobs == 100
    assert 10 <= found.p50_ms <= 12
    assert 4000 <= found.p99_ms <= 4760
    (of_all,) = latencies.latencies(client).course.values()
    assert of_all == found


def test_jobs_without_a_hook_are_not_counted(client: redis.Redis) -> None:
    finish(client, "reaper-29924518", 1)
    finish(client, "others", 1, hp="")
    finish(client, "broken", 1, created_at="long ago")
    finish(client, "ahead", -5)
    finish(client, "archive", 20)
    client.zrem("rq:finished:low", "archive")
    client.zadd("rq:finished:slow", {"archive": time.time() + 60})
    client.zadd("rq:finished:low", {"expired": time.time()})
    latencies.add_sample(client)
    found = latencies.latencies(client).operations
    assert found == {"op": latencies.Latency(1, 1, 1)}


def test_stored_samples_are_limited(client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latencies, "MOST_SAMPLES", 3)
    for number in range(5):
        finish(client, f"job{number}", 1)
        latencies.add_sample(client)
        latencies.add_sample(client)
    assert [each.jobs for each in latencies.latencies(client).course.values()] == [1, 1, 1]


def test_bars_stay_visible_beside_a_slow_minute() -> None:
    course = [{"at": "", "jobs": 1, "p50_ms": 1.0, "p99_ms": ms} for ms in (4.0, 20.0, 60_000.0)]
    bars = latency_bars(course)
    assert [bar["p99_ms"] for bar in bars] == [4, 20, 60_000]
    assert 10 < bars[0]["height"] < bars[1]["height"] < bars[2]["height"] == 100
    assert [bar["y"] + bar["height"] for bar in bars] == [100] * 3
    assert bars[0]["x"] == 0
    assert bars[-1]["x"] + bars[-1]["width"] == pytest.approx(100, abs=0.01)
    assert bars[0]["width"] < 2
    assert latency_bars(course[:1])[0]["x"] == 0
    assert latency_bars([]) == []


def test_samples_of_a_clock_that_was_set_back_are_counted(client: redis.Redis) -> None:
    ahead = {"at": "2999-01-01T00:00:00.000000Z", "operations": {"op": {"8": 2}}}
    client.lpush(latencies.LATENCIES_KEY, json.dumps(ahead))
    finish(client, "job", 1)
    latencies.add_sample(client)
    assert latencies.latencies(client).operations["op"].jobs == 3
