"""Costs: each message counts once, in any order of jobs, in each grouping."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db.database import Database
from hivepipe.db.forget import remove_rows
from hivepipe.errors import BadEnvelopeError
from hivepipe.jobs.envelope import Envelope, envelope_of, follow_ups, read_envelope
from hivepipe.operations.slow import execute_at_once
from hivepipe.operations.usage import MESSAGES_PER_JOB, usage_jobs
from hivepipe.transcripts.usage import Usage, usage_of
from hivepipe.worker.group_commit import commit_batch
from tests.archive_scene import totals_of
from tests.conftest import Home

FOLDER = Path(__file__).resolve().parents[1] / "transcripts"
TRANSCRIPTS = sorted(FOLDER.glob("*/**/*.jsonl"))
PARENT = "aaaaaaaa-0000-4000-8000-000000000001"
FORK = "ffffffff-0000-4000-8000-000000000002"
BACKGROUND = "bbbbbbbb-0000-4000-8000-000000000003"
COMPACTION = "cccccccc-0000-4000-8000-000000000004"
# Added up by hand, message by message. Messages that a fork or a side question repeats count once.
TOTAL = 0.02626 + 0.006476 + 0.01955 + 0.303875


def reader(session: str = "", number: int = 1) -> Envelope:
    """Return the origin of a slow job that reads a transcript."""
    metadata = {"session": session, "instance": "", "project": "/p"}
    content = {"v": 1, "id": f"{number:032x}", "operation": "archive_transcript", "priority": 8}
    return envelope_of(content | {"metadata": metadata, "event_time_ns": 1_795_222_800 * 10**9})


def usages_of(path: Path) -> list[Usage]:
    return totals_of(path.read_bytes().splitlines()).take_usages()


def jobs() -> Iterator[Envelope]:
    """Yield one job per message and file, so that they can be applied in many orders."""
    for number, path in enumerate(TRANSCRIPTS):
        for usage in usages_of(path):
            for message in follow_ups(reader(number=number), list(usage_jobs([usage]))):
                yield read_envelope(message.envelope)


def rows(path: Path) -> list[dict[str, Any]]:
    db = Database(path)
    found = db.rows("SELECT * FROM usage ORDER BY message_id, request_id")
    db.close()
    return [dict(row) for row in found]


def recorded(path: Path, in_order: list[Envelope]) -> list[dict[str, Any]]:
    db = Database(path)
    outcome = commit_batch(db, in_order)
    db.close()
    assert not outcome.failed
    return rows(path)


def test_any_order_and_any_repetition_give_the_same_rows(tmp_path: Path) -> None:
    every = list(jobs())
    wanted = recorded(tmp_path / "in-order.db", every)
    # 17 messages, one of which is also under the request of a side question
    assert len(wanted) == 18
    for seed in range(5):
        shuffled = every + random.Random(seed).choices(every, k=20)
        random.Random(seed).shuffle(shuffled)
        assert recorded(tmp_path / f"{seed}.db", shuffled) == wanted


def test_one_job_per_line_gives_the_same_rows(tmp_path: Path) -> None:
    """The lines of one message may arrive in separate jobs and in any order."""
    wanted = recorded(tmp_path / "in-order.db", list(jobs()))
    single = []
    for path in TRANSCRIPTS:
        for line in path.read_bytes().splitlines():
            usage = usage_of(json.loads(line)) if b"usage" in line else None
            if usage:
                (job,) = usage_jobs([usage])
                (message,) = follow_ups(reader(), [job])
                single.append(read_envelope(message.envelope))
    for seed in range(3):
        random.Random(seed).shuffle(single)
        assert recorded(tmp_path / f"{seed}.db", single) == wanted


def test_many_messages_are_split_into_several_jobs(tmp_path: Path) -> None:
    (one, *_) = usages_of(TRANSCRIPTS[0])
    many = [
        Usage(f"msg_{n}", "", "s", "", one.time, one.rate, one.tokens)
        for n in range(2 * MESSAGES_PER_JOB + 1)
    ]
    made = list(usage_jobs(many))
    assert len(made) == 3
    db = Database(tmp_path / "hive.db")
    execute_at_once("", db, reader(), made)
    execute_at_once("", db, reader(), made)
    db.close()
    assert len(rows(tmp_path / "hive.db")) == len(many)


def test_a_fork_does_not_restore_rows_of_a_forgotten_session(tmp_path: Path) -> None:
    db = Database(tmp_path / "hive.db")
    remove_rows(db, [PARENT])
    db.close()
    found = recorded(tmp_path / "hive.db", list(jobs()))
    assert {row["session_id"] for row in found} == {FORK, BACKGROUND, COMPACTION}


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"messages": {}},
        {"messages": [1]},
        {"messages": [{}]},
        {"messages": [{"tokens": 1}]},
        {"messages": [{"message": "m", "time": 1, "tokens": []}]},
    ],
)
def test_an_invalid_payload_is_refused(tmp_path: Path, payload: dict[str, Any]) -> None:
    metadata = {"session": "s", "instance": "i", "project": "/p"}
    content = {"v": 1, "id": "1", "operation": "record_usage", "priority": 8, "payload": payload}
    job = envelope_of(content | {"metadata": metadata, "event_time_ns": 1})
    outcome = commit_batch(Database(tmp_path / "hive.db"), [job])
    assert isinstance(outcome.failed[0], BadEnvelopeError)


@pytest.fixture
def home(private_home: Home) -> Home:
    """A home in which all transcripts are read."""
    private_home.path.mkdir(mode=0o700, exist_ok=True)
    recorded(private_home.database, list(jobs()))
    return private_home


def command(home: Home, *arguments: str, expect: int = 0, zone: str = "UTC") -> str:
    return home.command("costs", *arguments, expect=expect, TZ=zone)


def costs(home: Home, by: str, *arguments: str, zone: str = "UTC") -> dict[str, float | None]:
    content = json.loads(command(home, "--by", by, "--json", *arguments, zone=zone))
    assert content["schema"] == 1
    known = [entry["cost_usd"] for entry in content["costs"] if entry["cost_usd"] is not None]
    assert content["total"]["cost_usd"] == pytest.approx(sum(known))
    messages = sum(entry["messages"] for entry in content["costs"])
    assert content["total"]["messages"] == messages
    return {entry[by]: entry["cost_usd"] for entry in content["costs"]}


def test_each_message_is_paid_for_once(home: Home) -> None:
    content = json.loads(command(home, "--json"))
    assert content["total"]["cost_usd"] == pytest.approx(TOTAL)
    assert content["total"]["messages"] == 17
    assert content["total"]["models_without_price"] == ["claude-tomorrow-1"]
    assert content["prices"]["date"] == "2026-11-21"


def test_by_session_the_history_of_a_fork_counts_for_its_parent(home: Home) -> None:
    assert costs(home, "session") == {
        PARENT: 0.02626,
        FORK: 0.006476,
        BACKGROUND: 0.01955,
        COMPACTION: 0.303875,
    }


def test_by_model_a_model_without_price_has_tokens(home: Home) -> None:
    assert costs(home, "model") == {
        "claude-opus-5-5": 0.02626,
        "claude-haiku-5-5": 0.006476,
        "claude-sonnet-5-5": 0.01672,
        "claude-haiku-4-5-20251001": 0.00283,
        "claude-opus-5": 0.303875,
        "claude-tomorrow-1": None,
    }
    shown = command(home, "--by", "model")
    assert "No price is known for: claude-tomorrow-1" in shown
    assert "no price" in shown
    assert "9,000" in shown


def test_by_agent_the_main_conversation_has_no_agent(home: Home) -> None:
    content = json.loads(command(home, "--by", "agent", "--json"))
    found = {(entry["agent"], entry["session"]): entry["cost_usd"] for entry in content["costs"]}
    assert found == {
        ("", PARENT): 0.02626,
        ("", FORK): 0.006476,
        ("", BACKGROUND): 0.01616,
        ("", COMPACTION): 0.271875,
        ("a41c09be77d2f0e13", BACKGROUND): 0.00283,
        ("aside_question-c5e5c961a7749e08", BACKGROUND): 0.00056,
        ("acompact-767ece576f2b74e8", COMPACTION): 0.032,
    }


@pytest.mark.parametrize(
    ("zone", "arguments", "first", "second"),
    [
        ("UTC", [], 0.050561, 0.3056),
        ("Asia/Kathmandu", ["--utc"], 0.050561, 0.3056),
        ("Asia/Kathmandu", [], 0.032736, 0.323425),
    ],
)
def test_days_are_local(
    home: Home, zone: str, arguments: list[str], first: float, second: float
) -> None:
    assert costs(home, "day", *arguments, zone=zone) == {"2026-11-20": first, "2026-11-21": second}
    since = costs(home, "day", "--since", "2026-11-21", *arguments, zone=zone)
    assert since == {"2026-11-21": second}


def test_the_table_has_a_total_and_the_source_of_the_prices(home: Home) -> None:
    shown = command(home)
    assert "0.3562+" in shown
    assert "List prices of 2026-11-21, https://" in shown


def test_prices_of_the_user_apply_at_once(home: Home) -> None:
    row = "input = 0\noutput = 0\ncache_read = 1000\ncache_write_5m = 0\ncache_write_1h = 0\n"
    (home.path / "prices.toml").write_text(f'[[price]]\nmodels = ["claude-tomorrow-1"]\n{row}')
    assert costs(home, "model")["claude-tomorrow-1"] == 9.0


def test_errors_are_one_line(home: Home, private_home: Home) -> None:
    (home.path / "prices.toml").write_text("price = 1")
    output = command(home, expect=1)
    wrong = "`price` is not a list of tables: write [[price]]"
    assert output == f"hivepipe: {home.path}/prices.toml: {wrong}\n"
    (home.path / "prices.toml").unlink()
    assert "Error" in command(home, "--by", "weather", expect=64)
    assert "Error" in command(home, "--since", "yesterday", expect=64)
    home.database.unlink()
    assert "nothing is recorded yet" in command(home, expect=1)


def test_a_stored_agent_has_its_type(home: Home) -> None:
    db = Database(home.database)
    db.execute("INSERT INTO swarms (id) VALUES ('w')", {})
    db.execute(
        "INSERT INTO agents (id, swarm_id, type, status) VALUES (:id, 'w', 'Explore', 'completed')",
        {"id": "a41c09be77d2f0e13"},
    )
    db.close()
    content = json.loads(command(home, "--by", "agent", "--json"))
    (entry,) = [each for each in content["costs"] if each["type"]]
    assert (entry["agent"], entry["type"]) == ("a41c09be77d2f0e13", "Explore")
