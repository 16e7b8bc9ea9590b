"""Kill the real client at random instants: nothing that it told anybody is lost."""

import json
import os
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.conftest import until
from tests.real.environment import living, needs_claude, settle
from tests.real.hook_payloads import Told, keep_what_is_told
from tests.real.kills import BUSY, KINDS, LOOKER, strike
from tests.real.person import Person
from tests.real.scenarios import TOOLS

pytestmark = needs_claude
KILLS = int(os.environ.get("TEST_KILLS", "10"))
SEED = int(os.environ.get("TEST_SEED", "19"))
GONE_SECS = 300  # the stack looks every minute who has gone
# Of tokens: hivepipe's name, the API's, the client's.
TOKENS = (
    ("input", "input_tokens", "inputTokens"),
    ("output", "output_tokens", "outputTokens"),
    ("cache_read", "cache_read_input_tokens", "cacheReadInputTokens"),
    ("cache_write_5m", "cache_creation_input_tokens", "cacheCreationInputTokens"),
)


@pytest.mark.timeout(600 + 60 * KILLS)
def test_all_events_of_a_killed_client_are_stored() -> None:
    with living(BUSY, LOOKER) as person:
        told = keep_what_is_told(person)
        drawn = Random(SEED)
        first = drawn.randrange(len(KINDS))
        struck: Counter[str] = Counter()
        for number in range(KILLS):
            kill = KINDS[(first + number) % len(KINDS)]
            struck[f"{kill.at} {kill.how.name} {kill.beside}".strip()] += 1
            struck["processes of the stack"] += strike(person, told, kill, drawn)
        # A whole run: it starts what a kill ended last, and says what an answer costs.
        report = person.ask(BUSY.prompt("Please work"), tools=TOOLS)
        # After a start that was killed, hooks start the stack again a minute later, not now.
        person.hivepipe("up", "-d", expect=None)
        settle(person, GONE_SECS)
        until(lambda: all_have_ended(person), "a killed session never ends", GONE_SECS)
        settle(person, GONE_SECS)
        compare_sessions(person, told)
        compare_calls(person, told)
        compare_agents(person, told)
        lines = compare_archives(person)
        messages = compare_costs(person, report)
        calls = sum(each["calls"] for each in sessions(person))
        print(f"seed {SEED}, {KILLS} kills: {calls} calls, {lines} lines, {messages} messages")
        print(dict(struck))


def sessions(person: Person) -> list[dict[str, Any]]:
    found = person.json("sessions", "--all")
    return list(found["sessions"])


def all_have_ended(person: Person) -> bool:
    return all(each["status"] == "ended" for each in sessions(person))


def compare_sessions(person: Person, told: Told) -> None:
    """Each session that a hook was told of is there, with its prompts and the reason of its end.

    Its end alone makes no session: a client that is killed in its first hook tells no more.
    """
    rows = {each["id"]: each for each in sessions(person)}
    begun = [each for each in told.payloads() if each["hook_event_name"] != "SessionEnd"]
    assert rows.keys() == {each["session_id"] for each in begun}
    prompts = told.by_session("UserPromptSubmit", "prompt")
    asked = {BUSY.prompt("Please work")}
    for session in rows:
        row = person.json("session", "show", session)
        said = [each["text"] for each in row["events"] if each["kind"] == "prompt"]
        assert said == [*(prompts.get(session, set()) & asked)], session
        assert row["session"]["end_reason"] in reasons(told, session), session


def reasons(told: Told, session: str) -> set[str]:
    """Return why a session may have ended; a call that is ended with its client may open it again.

    Then its process is found gone.
    """
    heard = [each for each in told.payloads() if each["session_id"] == session]
    names = [each["hook_event_name"] for each in heard]
    said = {each["reason"] for each in heard if each["hook_event_name"] == "SessionEnd"}
    return said if names[-2:] == ["Stop", "SessionEnd"] else said | {"process gone"}


def compare_calls(person: Person, told: Told) -> None:
    """Each session has as many calls, and calls that failed, as its hooks were told of."""
    for column, event in (("calls", "PreToolUse"), ("failed", "PostToolUseFailure")):
        wanted = told.by_session(event, "tool_use_id")
        found = {each["id"]: each[column] for each in sessions(person) if each[column]}
        assert found == {session: len(ids) for session, ids in wanted.items()}, column


def compare_agents(person: Person, told: Told) -> None:
    """Each agent that a hook was told of is there; completed, if a hook was told of its end."""
    rows = person.json("agents")["agents"]
    begun, over = (told.by_session(f"Subagent{what}", "agent_id") for what in ("Start", "Stop"))
    known = {each["id"] for each in rows}
    assert known >= {id for ids in begun.values() for id in ids}
    completed = {each["id"] for each in rows if each["status"] == "completed"}
    assert completed == {id for ids in over.values() for id in ids}


def compare_archives(person: Person) -> int:
    """Each transcript of the client is an archive, byte for byte; no other is. Return the lines."""
    of_client = transcripts(person)
    listed = person.json("archive", "list", "--agents")["archives"]
    home = Path(person.hivepipe("home").strip())
    kept = {each["meta"]["source"]["path"]: home / "archive" / each["path"] for each in listed}
    assert kept.keys() == {str(path) for path in of_client}
    for path in of_client:
        assert kept[str(path)].read_bytes() == path.read_bytes(), path
    return sum(len(path.read_bytes().splitlines()) for path in of_client)


def transcripts(person: Person) -> list[Path]:
    """Return all transcripts that the client wrote, of sessions and of subagents."""
    projects = person.home / ".claude" / "projects"
    return [*projects.glob("*/*.jsonl"), *projects.glob("*/*/subagents/**/*.jsonl")]


def compare_costs(person: Person, report: dict[str, Any]) -> int:
    """Messages, tokens and dollars of each session are what the client wrote; return the messages.

    Dollars as in its report of a whole run, whose answers are like all others.
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
            # It wrote the line of a cut answer, and was ended before it counted that.
            assert found["cost_usd"] > dollars, session
        else:
            assert found["cost_usd"] == pytest.approx(dollars, abs=1e-4), session
    return sum(each["messages"] for each in costs.values())


def lines_of(path: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a transcript."""
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue  # the client was killed while it wrote
    return found


def own_count(person: Person, session: str) -> dict[str, Any]:
    """Return what the client itself counted last, if its version does and nobody killed it."""
    lines = [line for path in person.transcripts(session) for line in lines_of(path)]
    counts = [line for line in lines if line["type"] == "cost-state"]
    return counts[-1] if counts else {}


def spent(person: Person, session: str) -> Counter[str]:
    """Return what the last line of every message says of its tokens."""
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
