"""Kill the real client at random moments: no event for which a hook was started is lost."""

import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conftest import until
from tests.real.environment import client_environment, needs_claude, settle
from tests.real.hook_payloads import HookPayloads, store_hook_payloads
from tests.real.kills import BUSY, KINDS, SUBAGENT, run_and_kill
from tests.real.person import Person
from tests.real.recorded_sessions import TOKENS
from tests.real.scenarios import TOOLS

pytestmark = needs_claude
KILLS = int(os.environ.get("TEST_KILLS", "10"))
SEED = int(os.environ.get("TEST_SEED", "19"))
GONE_SECS = 300  # The reaper looks for ended processes every minute.


@pytest.mark.long
@pytest.mark.timeout(600 + 60 * KILLS)
def test_all_events_of_a_killed_client_are_stored() -> None:
    with client_environment(BUSY, SUBAGENT) as person:
        stored = store_hook_payloads(person)
        random = Random(SEED)
        first = random.randrange(len(KINDS))
        kills: Counter[str] = Counter()
        for number in range(KILLS):
            kill = KINDS[(first + number) % len(KINDS)]
            kills[f"{kill.moment} {kill.signum.name} {kill.process}".strip()] += 1
            kills["processes of the stack"] += run_and_kill(person, stored, kill, random)
        # A complete run restarts the processes that were killed last, and gives the price of an
        # answer.
        report = person.ask(BUSY.prompt("Please work"), tools=TOOLS)
        # If the start of the stack was killed, hooks retry it only after a minute.
        person.hivepipe("up", "-d", expect=None)
        settle(person, GONE_SECS)
        until(lambda: all_have_ended(person), "a killed session never ends", GONE_SECS)
        settle(person, GONE_SECS)
        compare_sessions(person, stored)
        compare_calls(person, stored)
        compare_agents(person, stored)
        lines = compare_archives(person)
        messages = compare_costs(person, report)
        calls = sum(each["calls"] for each in sessions(person))
        print(f"seed {SEED}, {KILLS} kills: {calls} calls, {lines} lines, {messages} messages")
        print(dict(kills))


def sessions(person: Person) -> list[dict[str, Any]]:
    found = person.json("sessions", "--all")
    return list(found["sessions"])


def all_have_ended(person: Person) -> bool:
    return all(each["status"] == "ended" for each in sessions(person))


def compare_sessions(person: Person, stored: HookPayloads) -> None:
    """Each session of a started hook is recorded, with its prompts and the reason of its end.

    A SessionEnd alone makes no session. A client that is killed in its first hook sends no other
    event.
    """
    rows = {each["id"]: each for each in sessions(person)}
    begun = [each for each in stored.complete() if each["hook_event_name"] != "SessionEnd"]
    assert rows.keys() == {each["session_id"] for each in begun}
    prompts = stored.by_session("UserPromptSubmit", "prompt")
    asked = {BUSY.prompt("Please work")}
    for session in rows:
        row = person.json("session", "show", session)
        said = [each["text"] for each in row["events"] if each["kind"] == "prompt"]
        assert said == [*(prompts.get(session, set()) & asked)], session
        assert row["session"]["end_reason"] in reasons(stored, session), session


def reasons(stored: HookPayloads, session: str) -> set[str]:
    """Return the possible reasons of a session's end.

    A call that ends after SessionEnd may reopen the session. The reaper then ends it with "process
    gone".
    """
    payloads = [each for each in stored.complete() if each["session_id"] == session]
    names = [each["hook_event_name"] for each in payloads]
    stated = {each["reason"] for each in payloads if each["hook_event_name"] == "SessionEnd"}
    return stated if names[-2:] == ["Stop", "SessionEnd"] else stated | {"process gone"}


def compare_calls(person: Person, stored: HookPayloads) -> None:
    """Each session has the calls and failed calls of its hooks."""
    for column, event in (("calls", "PreToolUse"), ("failed", "PostToolUseFailure")):
        wanted = stored.by_session(event, "tool_use_id")
        found = {each["id"]: each[column] for each in sessions(person) if each[column]}
        assert found == {session: len(ids) for session, ids in wanted.items()}, column


def compare_agents(person: Person, stored: HookPayloads) -> None:
    """Each agent with a SubagentStart is recorded; it is completed if it has a SubagentStop."""
    rows = person.json("agents")["agents"]
    begun, over = (stored.by_session(f"Subagent{what}", "agent_id") for what in ("Start", "Stop"))
    known = {each["id"] for each in rows}
    assert known >= {id for ids in begun.values() for id in ids}
    completed = {each["id"] for each in rows if each["status"] == "completed"}
    assert completed == {id for ids in over.values() for id in ids}


def compare_archives(person: Person) -> int:
    """Each transcript is archived byte for byte, and nothing else; return the number of lines."""
    of_client = transcripts(person)
    listed = person.json("archive", "list", "--agents")["archives"]
    home = Path(person.hivepipe("home").strip())
    kept = {each["meta"]["source"]["path"]: home / "archive" / each["path"] for each in listed}
    assert kept.keys() == {str(path) for path in of_client}
    for path in of_client:
        assert kept[str(path)].read_bytes() == path.read_bytes(), path
    return sum(len(path.read_bytes().splitlines()) for path in of_client)


def transcripts(person: Person) -> list[Path]:
    """Return all transcripts that the client wrote, including those of subagents."""
    projects = person.home / ".claude" / "projects"
    return [*projects.glob("*/*.jsonl"), *projects.glob("*/*/subagents/**/*.jsonl")]


def compare_costs(person: Person, report: dict[str, Any]) -> int:
    """Messages, tokens and dollars of each session equal the client's; return the messages.

    All answers cost the same, so a complete run's report gives the price of one.
    """
    costs = {each["session"]: each for each in person.json("costs", "--by", "session")["costs"]}
    written = {each["id"]: spent(person, each["id"]) for each in sessions(person)}
    price = report["total_cost_usd"] / written[report["session_id"]]["messages"]
    assert costs.keys() == {session for session, found in written.items() if +found}
    for session, found in costs.items():
        wanted, counted = written[session], own_count(person, session)
        assert found["messages"] == wanted["messages"], session
        used = counted.get("modelUsage", {}).values()
        own = {name: sum(model[theirs] for model in used) for name, _, theirs in TOKENS}
        for name, own_tokens in own.items():
            assert found["tokens"][name] == max(wanted[name], own_tokens), (session, name)
        dollars = counted.get("totalCostUSD", wanted["messages"] * price)
        if used and any(wanted[name] > own_tokens for name, own_tokens in own.items()):
            # The client wrote the line of a cut answer and was killed before it counted the answer.
            assert found["cost_usd"] > dollars, session
        else:
            assert found["cost_usd"] == pytest.approx(dollars, abs=1e-4), session
    return sum(each["messages"] for each in costs.values())


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the complete lines of a transcript."""
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # The client was killed while it wrote the line.
    return found


def own_count(person: Person, session: str) -> dict[str, Any]:
    """Return the client's last cost state in the transcripts; empty if the version has none."""
    lines = [line for path in person.transcripts(session) for line in lines_of(path)]
    counts = [line for line in lines if line["type"] == "cost-state"]
    return counts[-1] if counts else {}


def spent(person: Person, session: str) -> Counter[str]:
    """Return messages and tokens by the last line of each message in the transcripts."""
    usages: dict[str, dict[str, Any]] = defaultdict(dict)
    for path in person.transcripts(session):
        for line in lines_of(path):
            message = line.get("message", {})
            if "usage" in message and message["model"] != "<synthetic>":
                usages[message["id"]] = message["usage"]
    total: Counter[str] = Counter(messages=len(usages))
    for usage in usages.values():
        total.update({name: usage[theirs] for name, theirs, _ in TOKENS})
    return total
