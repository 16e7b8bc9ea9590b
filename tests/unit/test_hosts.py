"""Events of hosts other than Claude Code: Codex CLI, Copilot CLI and Cursor."""

from hivepipe.events import job_plan
from hivepipe.events import parse_event as parse
from hivepipe.events.claude_code import (
    Event,
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
    SessionStart,
    UserPromptSubmit,
)
from tests import host_payloads, payloads
from tests.host_payloads import CODEX, COPILOT, CURSOR
from tests.payloads import encoded


def parsed(payload: host_payloads.Payload) -> Event:
    event = parse("", encoded(payload))
    assert event is not None
    assert not event.problems
    return event


def test_an_event_names_its_host_and_one_of_claude_code_none() -> None:
    of_hosts = {"codex": CODEX, "copilot": COPILOT, "cursor": [CURSOR]}
    for host, events in of_hosts.items():
        assert {parsed(payload).host for payload in events} == {host}
    assert {parsed(payload).host for payload in payloads.ALL.values()} == {""}


def test_turns_models_and_patches_of_codex_are_read() -> None:
    start, prompt, call, patch = map(parsed, CODEX[:4])
    assert isinstance(start, SessionStart)
    assert (start.model, start.source) == ("gpt-5.5", "startup")
    assert isinstance(prompt, UserPromptSubmit)
    turn = host_payloads.CODEX_PROMPT["turn_id"]
    assert (prompt.prompt, prompt.prompt_id) == ("please work", turn)
    assert prompt.is_users
    assert isinstance(call, PreToolUse)
    assert (call.tool, call.command, call.tool_use_id) == ("Bash", "ls", "call_1")
    assert isinstance(patch, PostToolUse)
    assert job_plan.is_operation(patch)


def test_paths_and_results_of_copilot_are_read() -> None:
    _, write, _, stop = map(parsed, COPILOT)
    assert isinstance(write, PostToolUse)
    assert (write.tool, write.file_path) == ("Write", "/home/ana/shop/a.txt")
    assert write.response["result_type"] == "success"
    assert stop.transcript_path == ""  # hivepipe cannot read it


def test_the_own_names_of_cursor_are_read() -> None:
    events = start, prompt, call, failure, end = [*map(parsed, host_payloads.CURSOR_OWN)]
    assert {each.host for each in events} == {"cursor"}
    session = host_payloads.CURSOR_START["conversation_id"]
    assert {each.session_id for each in events} == {session}
    assert isinstance(start, SessionStart)
    assert isinstance(prompt, UserPromptSubmit)
    assert (prompt.prompt, prompt.prompt_id) == ("please work", "gen-1")
    assert isinstance(call, PostToolUse)
    assert (call.tool, call.command, call.tool_use_id) == ("Bash", "ls", "t1")
    assert call.duration_ms == 10
    assert isinstance(failure, PostToolUseFailure)
    assert (failure.error, failure.duration_ms) == ("Command timed out after 30s", 5000)
    assert end.name == "SessionEnd"


def test_a_session_carries_the_name_of_its_host() -> None:
    def planned(payload: host_payloads.Payload) -> dict[str, object]:
        context = job_plan.Context(
            event_time_ns=1, session="s", own_session="s", enters_session=True
        )
        jobs = job_plan.plan(parsed(payload), context)
        (start,) = (job for job in jobs if job.operation == "start_session")
        return start.payload

    assert planned(host_payloads.CODEX_START)["client"] == "codex"
    # Hooks may be installed in a running session.
    assert planned(host_payloads.CODEX_CALL)["client"] == "codex"
    assert planned(host_payloads.COPILOT_WRITE)["client"] == "copilot"
    assert "client" not in planned(payloads.ALL["SessionStart"])
