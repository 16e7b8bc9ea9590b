"""Run times of hooks are counted by event; `status` and the page show the same figures."""

import json
import subprocess
import sys
import time

import pytest
import redis

from hivepipe.events.claude_code import PROBE
from hivepipe.queue import hook_times
from tests.conftest import Home, Server, fire, hook_path
from tests.payloads import PRE_BASH, SESSION_START, STOP, changed, encoded
from tests.web_scene import client_of

HELD_SECS = 0.3


def fire_late(event: str, home: Home) -> None:
    command = [sys.executable, "-I", "-S", str(hook_path(event))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=home.env) as hook:
        time.sleep(HELD_SECS)
        hook.communicate(encoded(PRE_BASH))


def test_every_hook_is_counted_with_its_time(private_home: Home, client: redis.Redis) -> None:
    """A call that creates no job is counted too; the time includes the wait for the event."""
    fire("SessionStart", SESSION_START, private_home.env)
    fire("PreToolUse", PRE_BASH, private_home.env)
    fire_late("PreToolUse", private_home)

    times = json.loads(private_home.command("status", "--json", expect=None))["hook_times"]
    assert {event: each["hooks"] for event, each in times.items()} == {
        "PreToolUse": 2,
        "SessionStart": 1,
    }
    assert times["PreToolUse"]["p99_ms"] >= HELD_SECS * 1000
    assert 1 < times["PreToolUse"]["p50_ms"] < times["PreToolUse"]["p99_ms"]

    page = client_of(private_home.project)
    (stack,) = page.get("/health.json").json()["stacks"]
    assert stack["hook_times"] == times
    assert '>PreToolUse</th><td class="number">2</td>' in page.get("/health").text


def test_the_time_covers_the_whole_process(private_home: Home, client: redis.Redis) -> None:
    """The time includes the interpreter's start, which ends before the first line of the hook."""
    busy = f"import time\nwhile time.process_time() < {HELD_SECS}: pass\n"
    code = f"{busy}import runpy, sys\nrunpy.run_path(sys.argv[1])"
    command = [sys.executable, "-I", "-S", "-c", code, str(hook_path("SessionStart"))]
    subprocess.run(command, input=encoded(SESSION_START), env=private_home.env, check=True)
    assert hook_times.hook_times(client)["SessionStart"].p50_ms >= HELD_SECS * 1000


def test_hooks_without_redis_and_probes_are_not_counted(
    private_home: Home, redis_server: Server, client: redis.Redis
) -> None:
    redis_server.end()
    fire("Stop", STOP, private_home.env)
    redis_server.start()
    fire("Stop", changed(STOP, session_id=f"{PROBE}0"), private_home.env)
    assert client.llen("rq:queue:high") == 1
    assert private_home.spool
    assert hook_times.hook_times(client) == {}


def test_samples_of_the_counts_are_limited(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_times, "MOST_SAMPLES", 3)
    for _ in range(5):
        client.hincrby(hook_times.HOOK_TIMES_KEY, "Stop 56", 2)  # bucket 56 ends at 16.4 ms
        before = hook_times.hook_times(client)
        hook_times.add_sample(client)
        hook_times.add_sample(client)
    assert before == {"Stop": hook_times.HookTime(8, 16.4, 16.4)}
    assert hook_times.hook_times(client)["Stop"].hooks == 6
    client.hincrby(hook_times.HOOK_TIMES_KEY, "Stop 80", 6)  # bucket 80 ends at 1048.6 ms
    assert hook_times.hook_times(client) == {"Stop": hook_times.HookTime(12, 16.4, 1048.6)}
