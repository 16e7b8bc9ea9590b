"""Whole sessions replayed against the guard: honest ones get no denial, stuck ones do."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hivepipe import settings
from hivepipe.guard.replay import Report, read_events, replay
from tests import honest_sessions, payloads
from tests.payloads import changed

TRANSCRIPTS = Path(__file__).resolve().parents[1] / "transcripts"


def replayed(events: Iterable[dict[str, Any]], home: Path) -> Report:
    return replay(enumerate(events, 1), str(home))


def test_a_clean_session_of_2000_calls_has_no_finding(tmp_path: Path) -> None:
    report = replayed(honest_sessions.clean(2000), tmp_path)
    assert (report.calls, report.findings) == (2000, [])


@pytest.mark.parametrize("seed", range(3))
def test_two_hours_of_editing_testing_and_waiting_are_not_denied(tmp_path: Path, seed: int) -> None:
    report = replayed(honest_sessions.two_hours(seed), tmp_path)
    assert report.calls > 500
    assert not report.denied
    assert len(report.findings) <= report.calls / 500


def test_the_calls_of_real_transcripts_have_no_finding(tmp_path: Path) -> None:
    calls = 0
    for path in TRANSCRIPTS.rglob("*.jsonl"):
        with path.open("rb") as lines:
            report = replay(read_events(lines), str(tmp_path / path.stem))
        assert report.findings == [], path
        calls += report.calls
    assert calls >= 15


def stuck(times: int, **fields: Any) -> list[dict[str, Any]]:
    calls = []
    for number in range(times):
        calls.append(changed(payloads.PRE_BASH, tool_use_id=f"t{number}", **fields))
        calls.append(changed(payloads.POST_BASH, tool_use_id=f"t{number}", **fields))
    return calls


def test_a_stuck_session_is_warned_once_and_then_denied(tmp_path: Path) -> None:
    report = replayed(stuck(20), tmp_path)
    assert [(f.count, f.denied) for f in report.findings] == [
        (8, False),
        *[(count, True) for count in range(15, 21)],
    ]


def appended(number: int) -> list[dict[str, Any]]:
    """Return a command that appends to a file; each call has another diff."""
    fields = {"tool_use_id": f"t{number}", "tool_input": {"command": "echo same >> ran.txt"}}
    response = payloads.APPENDED_AGAIN if number else payloads.APPENDED
    return [
        changed(payloads.PRE_BASH, **fields),
        changed(payloads.POST_BASH, **fields, tool_response=response),
    ]


def test_equal_commands_with_different_diffs_or_output_files_are_a_loop(tmp_path: Path) -> None:
    events = [event for number in range(15) for event in appended(number)]
    assert [found.count for found in replayed(events, tmp_path).denied] == [15]
    long = stuck(15)
    for number, event in enumerate(long):
        if "tool_response" in event:
            event["tool_response"]["persistedOutputPath"] = f"/tool-results/{number}.txt"
    assert [found.count for found in replayed(long, tmp_path / "other").denied] == [15]


def test_a_command_that_changed_a_file_restarts_the_counts_of_other_calls(tmp_path: Path) -> None:
    events = []
    for number, event in enumerate(stuck(20)):
        events.append(event)
        if number == 20:
            fields = {"tool_use_id": "change", "tool_input": {"command": "sed -i s/a/b/ x.py"}}
            response = payloads.APPENDED_AGAIN
            events.append(changed(payloads.PRE_BASH, **fields))
            events.append(changed(payloads.POST_BASH, **fields, tool_response=response))
    assert replayed(events, tmp_path).denied == []
    diff = {**payloads.APPENDED["bashEditDiff"], "files": [], "unavailable": True}
    for event in events:
        if event["tool_use_id"] == "change" and "tool_response" in event:
            event["tool_response"]["bashEditDiff"] = diff  # it proves no change
    assert len(replayed(events, tmp_path / "other").denied) == 6


def bash(number: int, **fields: Any) -> dict[str, Any]:
    return changed(payloads.PRE_BASH, tool_use_id=f"t{number}", **fields)


def test_arguments_are_compared_deep_inside_and_in_any_order_of_keys(tmp_path: Path) -> None:
    deep = [bash(n, tool_input={"where": {"all": [{"id": n}]}}) for n in range(40)]
    assert replayed(deep, tmp_path).findings == []
    orders = ({"a": {"x": 1, "y": [2]}, "b": 1}, {"b": 1, "a": {"y": [2], "x": 1}})
    calls = [bash(number, tool_input=orders[number % 2]) for number in range(15)]
    assert replayed(calls, tmp_path / "other").findings[-1].count == 15


@pytest.mark.parametrize(
    "tool_input",
    [
        {"n": 1e400},
        json.loads("[" * 900 + "]" * 900),
        {"text": "\ud83d"},
        {"n": float("nan")},
        None,
    ],
    ids=["infinite", "deep", "half-an-emoji", "nan", "nothing"],
)
def test_odd_arguments_are_counted_or_let_through(tmp_path: Path, tool_input: object) -> None:
    calls = [bash(number, tool_input=tool_input) for number in range(15)]
    assert replayed(calls, tmp_path).calls == 15


def test_a_prompt_restarts_all_counts(tmp_path: Path) -> None:
    rounds = [
        [*(changed(call, tool_use_id=f"{number}-{call['tool_use_id']}") for call in stuck(7))]
        for number in range(3)
    ]
    prompt = payloads.USER_PROMPT_SUBMIT
    assert replayed([*rounds[0], prompt, *rounds[1], prompt, *rounds[2]], tmp_path).findings == []
    assert replayed([*rounds[0], *rounds[1], *rounds[2]], tmp_path).findings != []


def test_subagents_have_counts_of_their_own(tmp_path: Path) -> None:
    agents = ("a1", "a2", "a3") * 7
    calls = [bash(number, agent_id=agent) for number, agent in enumerate(agents)]
    assert replayed(calls, tmp_path).findings == []


def test_waiting_is_reported_once(tmp_path: Path) -> None:
    events = [
        changed(event, tool_input={"command": f"sleep {number // 100}"}, tool_use_id=f"t{number}")
        for number in range(1000)
        for event in (payloads.PRE_BASH, payloads.POST_BASH)
    ]
    assert [(f.line, f.denied) for f in replayed(events, tmp_path).findings] == [(29, False)]


def test_the_same_loop_is_warned_of_once_in_500_calls(tmp_path: Path) -> None:
    """Every fifth call is the same, so it is always eight of the last forty."""
    commands = ["git status" if n % 5 == 0 else f"make step-{n}" for n in range(1200)]
    events = [bash(n, tool_input={"command": command}) for n, command in enumerate(commands)]
    findings = replayed(events, tmp_path).findings
    assert [(f.count, f.denied) for f in findings] == [(8, False)] * 3
    assert [f.line for f in findings] == [36, 536, 1036]


def test_settings_are_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"HIVEPIPE_GUARD_LOOP": "2 3", "HIVEPIPE_GUARD_WAITING": ";"}
    monkeypatch.setattr(settings, "_from_files", values)
    report = replayed(stuck(3, tool_input={"command": "sleep 1"}), tmp_path)
    assert [(f.count, f.denied) for f in report.findings] == [(2, False), (3, True)]
