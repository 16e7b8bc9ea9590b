"""The calls that the intake expects for the next call are those that Redis then returns."""

from pathlib import Path

import fakeredis
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivepipe.events import parse_event
from hivepipe.events.job_plan import Context
from hivepipe.guard import listed_calls
from hivepipe.guard.check import kind_of_call
from hivepipe.guard.client import LISTED, VERDICT_SCRIPT, WatchedEvent, record_elsewhere
from hivepipe.guard.listed_calls import ListedCalls
from tests import payloads
from tests.payloads import changed, encoded
from tests.unit.test_guard_scripts import run

KINDS = ("call", "call", "call", "result", "failure", "batch", "prompt", "stop", "verdict")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.integers(0, 60),  # the call's id
        st.sampled_from(["ls", "make", "git status"]),
        st.sampled_from(["", "", "", "a12"]),  # the conversation of a subagent
        st.sampled_from(["", "", "", "task-1"]),
        st.sampled_from([True, True, True, False]),  # whether the intake records it
        st.sampled_from([0, 0, 0, 3]),  # seconds by which it is late
    ),
    max_size=150,
)


def payload_of(kind: str, number: int, command: str, agent: str) -> payloads.Payload:
    """Return an event. The call of a batch was run if its number is even."""
    call = {"tool_use_id": f"toolu_{number}", "tool_input": {"command": command}}
    own = {"agent_id": agent} if agent else {}
    if kind == "batch":
        answer = "done" if number % 2 == 0 else payloads.NOT_READ
        calls = [{"tool_name": "Bash", **call, "tool_response": answer}]
        return changed(payloads.EVENTS["PostToolBatch"], tool_calls=calls, **own)
    if kind in ("call", "verdict"):
        return changed(payloads.PRE_BASH, **call, **own)
    if kind == "result":
        return changed(payloads.POST_BASH, **call, tool_response={"stdout": command}, **own)
    if kind == "failure":
        named = {"hook_event_name": "PostToolUseFailure", "error": "Exit code 1"}
        return changed(payloads.POST_BASH, **call, **named, tool_response=..., **own)
    return payloads.EVENTS["UserPromptSubmit" if kind == "prompt" else "Stop"]


def watch_of(payload: payloads.Payload, number: int, task: str, home: str) -> WatchedEvent:
    event = parse_event("", encoded(payload))
    assert event is not None
    context = Context(event_time_ns=number * 10**9, own_session=event.session_id)
    watch = WatchedEvent(event, context, home, kind_of_call(event))
    watch.task = task
    return watch


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS)
def test_the_expected_calls_are_those_that_redis_returns(
    tmp_path: Path, steps: list[tuple[str, int, str, str, str, bool, int]]
) -> None:
    redis, listed = fakeredis.FakeRedis(), ListedCalls(str(tmp_path / LISTED))
    for at, (kind, number, command, agent, task, is_ours, late) in enumerate(steps, 3):
        watch = watch_of(payload_of(kind, number, command, agent), at - late, task, str(tmp_path))
        if not is_ours:
            run(redis, watch.note())
            record_elsewhere(str(tmp_path))
            continue
        expected = listed.up_to(watch) if kind == "call" else ""
        refuses_none = kind == "batch" and listed.has_results_of_all(watch)
        returned = listed.remember(watch, run(redis, listed.asked_for(watch.note())))
        assert expected in ("", returned)
        assert not (refuses_none and returned)
        if kind == "verdict":
            verdict = VERDICT_SCRIPT, [*watch.keys, watch.id, "1", ""]
            listed.remember(watch, run(redis, listed.asked_for(verdict)))


def test_calls_are_known_until_another_process_records_one(tmp_path: Path) -> None:
    redis, listed = fakeredis.FakeRedis(), ListedCalls(str(tmp_path / LISTED))
    watches = [watch_of(payload_of("call", at, "ls", ""), at, "", str(tmp_path)) for at in range(5)]
    assert listed.up_to(watches[0]) == ""
    for watch in watches[:3]:
        listed.remember(watch, run(redis, listed.asked_for(watch.note())))
    assert len(listed.up_to(watches[3]).split()) == 4
    run(redis, watches[3].note())
    record_elsewhere(str(tmp_path))
    assert listed.up_to(watches[4]) == ""
    assert (
        len(listed.remember(watches[4], run(redis, listed.asked_for(watches[4].note()))).split())
        == 5
    )
    listed.remember(watches[4], "")  # Redis did not answer: the note comes later
    assert listed.up_to(watches[0]) == ""


def test_old_lists_and_those_of_many_conversations_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis, listed = fakeredis.FakeRedis(), ListedCalls(str(tmp_path / LISTED))

    def of(agent: str) -> WatchedEvent:
        return watch_of(payload_of("call", 1, "ls", agent), 1, "", str(tmp_path))

    def record(agent: str) -> None:
        listed.remember(of(agent), run(redis, listed.asked_for(of(agent).note())))

    def knows(agent: str) -> bool:
        return bool(
            listed.up_to(watch_of(payload_of("call", 2, "ls", agent), 2, "", str(tmp_path)))
        )

    assert not knows("a1")  # sets the mark
    record("a1")
    record("a2")
    assert knows("a1")
    assert knows("a2")
    for at in range(listed_calls.MOST_KNOWN):
        record(f"b{at}")
    assert not knows("a1")
    assert knows(f"b{at}")
    later = listed_calls.time.monotonic() + listed_calls.KNOWN_SECS
    monkeypatch.setattr("hivepipe.guard.listed_calls.time.monotonic", lambda: later)
    assert not knows(f"b{at}")


def test_two_sessions_with_other_tasks_are_known_side_by_side(tmp_path: Path) -> None:
    redis, listed = fakeredis.FakeRedis(), ListedCalls(str(tmp_path / LISTED))
    first, second = (
        watch_of(changed(payloads.PRE_BASH, session_id=f"s{n}"), n, f"task-{n}", str(tmp_path))
        for n in (1, 2)
    )
    assert listed.up_to(first) == ""
    for watch in (first, second):
        listed.remember(watch, run(redis, listed.asked_for(watch.note())))
    for watch in (first, second):
        watch.id = "f" * 16
        assert len(listed.up_to(watch).split()) == 2
