"""Any stdin of a hook raises no exception, and the writer can read the jobs that result."""

import json

from hypothesis import given
from hypothesis import strategies as st

from hivepipe.events import job_plan, parse_event
from hivepipe.events.claude_code import KINDS
from hivepipe.guard.client import WatchedEvent
from hivepipe.jobs.envelope import read_envelope
from hivepipe.queue.client import eval_command, job_data
from hivepipe.queue.job_data import LIMIT_BYTES, envelope_text
from tests import payloads
from tests.conftest import NEUTRAL, Home, hook_answer
from tests.faults.oracle import FIRST_NS
from tests.fuzz.inputs import altered, as_json, broken, fuzzed, replayed

EXAMPLES = [
    value
    for name, value in sorted(vars(payloads).items())
    if isinstance(value, dict) and "hook_event_name" in value
]
MOST_JOBS = 12


def check_event(name: str, data: bytes) -> None:
    """Parse the bytes as a hook does, and encode its jobs."""
    event = parse_event(name, data)
    if event is None:
        return
    context = job_plan.Context(
        event_time_ns=FIRST_NS,
        session=event.session_id,
        own_session=event.session_id,
        instance="inst-a",
        enters_session=bool(event.session_id),
        project="/home/ana/shop",
        cwd=event.cwd,
        swarm="swarm-a",
        count=job_plan.Count(True, 1, 1),
    )
    planned = job_plan.plan(event, context)
    assert len(planned) <= MOST_JOBS
    sent = job_plan.encode(planned, event, context)
    assert len({message.id for message in sent}) == len(sent)
    for message in sent:
        packed = job_data(message.envelope)
        assert len(packed) < LIMIT_BYTES
        envelope = read_envelope(envelope_text(packed))
        assert (envelope.id, envelope.session) == (message.id, event.session_id)
        json.dumps(envelope.payload, ensure_ascii=False).encode()  # it can be stored
    assert all(isinstance(part, bytes) for part in eval_command(sent))
    WatchedEvent(event, context, "/home/ana/shop/.hive-mind").note()


@fuzzed
@given(st.sampled_from(sorted(KINDS)), broken(altered(EXAMPLES).map(as_json)))
def test_any_event_is_parsed_without_an_exception(name: str, data: bytes) -> None:
    check_event(name, data)


@replayed("events")
def test_an_event_that_failed_once(data: bytes, private_home: Home) -> None:
    for name in sorted(KINDS):
        check_event(name, data)
    assert hook_answer("PostToolUse", data, private_home.env) == NEUTRAL


def test_no_example_is_refused() -> None:
    """The examples are valid before they are damaged."""
    assert len(EXAMPLES) > 10
    for example in EXAMPLES:
        assert parse_event("", as_json(example)) is not None
