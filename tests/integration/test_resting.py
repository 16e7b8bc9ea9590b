"""Every command works on a resting stack, and none leaves it running."""

import json
import os
import signal
from contextlib import suppress
from typing import Any

import pytest

from hivepipe.queue.connection import connect
from tests.integration.test_autostart import UnstartedStack
from tests.sandbox import ONE_OF_EACH, Sandbox, eventually

BRIEFLY = {"HIVEPIPE_IDLE_SECS": "1"}


@pytest.fixture
def unstarted(sandbox: Sandbox) -> UnstartedStack:
    return UnstartedStack(sandbox)


@pytest.fixture
def resting(unstarted: UnstartedStack) -> UnstartedStack:
    """A project whose stack has a failed job and ended when it was idle."""
    unstarted.store_environment(**BRIEFLY)
    unstarted.sandbox.fire()
    eventually(lambda: unstarted.sandbox.counts() == ONE_OF_EACH)
    with connect(unstarted.sandbox.socket) as client:
        client.hset("rq:job:dead1", mapping={"data": "{}", "status": "failed"})
        client.zadd("rq:failed:medium", {"dead1": 1})
    unstarted.sandbox.fire("s-1", "SessionEnd")
    eventually(lambda: unstarted.sandbox.processes() == {})
    return unstarted


def failed_jobs(sandbox: Sandbox, *words: str) -> list[str]:
    return [job["id"] for job in json.loads(sandbox.run("failed", "list", "--json"))["failed"]]


def test_a_stack_that_never_ran_is_resting_without_failed_jobs(unstarted: UnstartedStack) -> None:
    report: dict[str, Any] = unstarted.sandbox.status(expect=0)
    assert (report["condition"], report["healthy"]) == ("resting", False)
    output = unstarted.sandbox.run("status")
    assert output.splitlines()[-1].startswith("resting: ")
    assert "down" not in output
    assert "unknown while" not in output
    assert unstarted.sandbox.run("failed", "list") == "no failed jobs\n"
    assert "no failed job has the id x" in unstarted.sandbox.run("failed", "show", "x", expect=1)
    assert unstarted.sandbox.processes() == {}


def test_failed_jobs_of_a_resting_stack_are_read_retried_and_deleted(
    resting: UnstartedStack,
) -> None:
    """Reading and deleting start no stack. A retry and RQ's tools start it, and it rests again."""
    sandbox = resting.sandbox
    assert sandbox.status(expect=0)["condition"] == "resting"
    assert_failed_job_is_shown(sandbox)
    retry = sandbox.start("failed", "retry", "--all", **BRIEFLY)
    output, errors = retry.communicate(timeout=90)
    assert "1 sent back" in output
    assert retry.returncode == 0 or "the stack keeps trying" in output + errors
    report = sandbox.report()
    assert report["leaves_when_idle"] is True or report["condition"] == "resting", (
        "the stack keeps running"
    )
    eventually(lambda: sandbox.processes() == {})
    assert_failed_job_is_shown(sandbox)  # the unreadable job failed again
    assert sandbox.run("failed", "discard", "dead", "--yes") == "1 discarded\n"
    assert failed_jobs(sandbox) == []
    assert sandbox.processes() == {}, "a process still runs"
    output = sandbox.run("rq", "--", "info", **BRIEFLY)
    assert "medium" in output
    assert "workers" in output
    eventually(lambda: sandbox.processes() == {})


def assert_failed_job_is_shown(sandbox: Sandbox) -> None:
    assert failed_jobs(sandbox) == ["dead1"]
    assert "dead1" in sandbox.run("failed", "list")
    assert "dead1" in sandbox.run("failed", "show", "dead")
    assert json.loads(sandbox.run("failed", "show", "dead", "--json"))["id"] == "dead1"
    assert sandbox.processes() == {}, "a process still runs"


def test_a_stack_that_is_stopping_is_resting(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    slow = sandbox.pid("slow")
    with connect(sandbox.socket) as client:  # the start-up grace of the workers is over
        for worker in client.smembers("rq:workers"):
            client.hset(worker, "birth", "2026-01-01T00:00:00.000000Z")
    os.kill(slow, signal.SIGSTOP)  # it is killed some seconds later
    os.kill(sandbox.pid("supervisord"), signal.SIGTERM)
    eventually(lambda: not sandbox.processes().keys() & {"scheduler", "writer"})
    report = sandbox.report()
    assert (report["condition"], report["processes"]) == ("resting", [])
    assert report["trouble"] is None
    findings = json.loads(sandbox.done("doctor", "--json").stdout)["findings"]
    assert not {"supervisor", "reduced"} & {finding["check"] for finding in findings}
    with suppress(ProcessLookupError):  # on a busy machine it was killed before
        os.kill(slow, signal.SIGCONT)
    eventually(lambda: sandbox.processes() == {})


def test_a_stopped_stack_is_not_started_by_other_commands(resting: UnstartedStack) -> None:
    resting.sandbox.run("down")
    report = resting.sandbox.status(expect=1)
    assert report["condition"] == "stopped"
    assert resting.sandbox.run("status", expect=1).splitlines()[-1].startswith("stopped: ")
    assert failed_jobs(resting.sandbox) == ["dead1"]
    assert "hivepipe up -d" in resting.sandbox.run("rq", "--", "info", expect=1)
    output = resting.sandbox.run("failed", "retry", "--all")
    assert "1 sent back" in output
    assert "until `hivepipe up`" in output
    assert resting.sandbox.processes() == {}
