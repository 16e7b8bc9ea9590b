"""Fields of rows and jobs: no secret passes, and no text raises."""

import json
from pathlib import Path

import pytest

from hivepipe import redact
from hivepipe.db.alerts import active_alerts, end_alert, raise_alert
from hivepipe.db.applied import count
from hivepipe.db.database import Database
from hivepipe.db.forget import FORGOTTEN, hive_workers_of, remove_text
from hivepipe.db.hive import live_workers, record_worker
from hivepipe.db.imported_skills import add_skill
from hivepipe.db.listings import listings
from hivepipe.db.memory_ratings import name_of, rate, usefulness
from hivepipe.db.profiles import (
    add_version,
    baseline,
    enter_profile,
    is_version,
    others_in_folder,
    set_baseline,
)
from hivepipe.db.sessions import newest_open_session
from hivepipe.db.slots import is_executed, last_slot, record_slot
from hivepipe.jobs.forget_query import ForgetQuery
from hivepipe.jobs.origin import Origin
from hivepipe.redact.fields import redact_column
from hivepipe.redact.user_rules import parse, redactor
from hivepipe.skills.statistics import ImportedSkill

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
ACCESS_KEY = "AKIA" + "Q3EGRZ7JX2MWPL4T"
AWS = "wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "9zQ4kT7mWs"

# column, its value, the secret in it
SECRETS: list[tuple[str, object, str]] = [
    ("metadata", {TOKEN: 1}, TOKEN),
    ("metadata", {"ana@shop.io": 1}, "ana@shop.io"),
    ("metadata", {"ana@shop.io": 1, "bob@shop.io": 2}, "shop.io"),
    ("checkpoint_data", {"command": ["mysql", "--password", "hunter2X9kk"]}, "hunter2X9kk"),
    ("checkpoint_data", {"command": ["mysql", "--password", "hunter1234"]}, "hunter"),
    ("data", {"password": ["hunter2X9kk"]}, "hunter2X9kk"),
    ("data", {"env": [{"name": "DB_PASSWORD", "value": "hunter2X9kk"}]}, "hunter2X9kk"),
    ("data", {"key": "AbCdEf0123456789GhIjKl+/mnOpQr=="}, "AbCdEf0123456789"),
    ("metadata", {"source": {"type": "base64", "data": ACCESS_KEY}}, ACCESS_KEY),
    ("files", [f"/srv/{TOKEN}"], TOKEN),
    ("path", f"aws_secret_access_key={AWS}", "K7MDENG"),
    ("transcript_path", "Authorization: Bearer abCD12efGH34/ijKL56mnOP78qrST90", "ijKL56"),
    ("path", "/srv/x?sig=aB3dE5fG7hI9jK1lM3nO5/pQ7rS9tU1vW3xY5zA7bC9", "pQ7rS9"),
]

# Texts that are no usual JSON
OTHERS = [
    '{"n": 12, "n": 34, "text": "1234"}',
    '{"number":1e999,"text":"1234"}',
    '{"1234-a":1,"5678-a":2}',
    '{"text":"\\ud800 1234"}',
    '{"text":"\ud800 1234"}',
    '{"text":"1234"',
    *("[" * deep + '"1234"' + "]" * deep for deep in (400, 900, 5000)),
    *('{"a":' * deep + '"1234"' + "}" * deep for deep in (400, 900, 5000)),
]


@pytest.mark.parametrize("has_own_rule", [False, True])
@pytest.mark.parametrize(("column", "value", "secret"), SECRETS)
def test_no_secret_of_a_built_in_rule_passes(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    column: str,
    value: object,
    secret: str,
    has_own_rule: bool,
) -> None:
    monkeypatch.setattr(redact, "_in_force", [])
    if has_own_rule:
        request.getfixturevalue("rule_of_digits")
    compact = json.dumps(value, separators=(",", ":"))
    texts = [value] if isinstance(value, str) else [compact, json.dumps(value)]
    for text in texts:
        assert secret in text
        assert secret not in redact_column(column, text)


@pytest.mark.usefixtures("rule_of_digits")
@pytest.mark.parametrize("text", OTHERS, ids=range(len(OTHERS)))
def test_a_text_that_is_no_usual_json_is_redacted_too(text: str) -> None:
    assert "1234" in text
    assert "1234" not in redact_column("data", text)


@pytest.mark.usefixtures("rule_of_digits")
def test_json_stays_json_if_a_secret_is_only_known_from_its_neighbours() -> None:
    secrets = {"env": [{"name": "DB_PASSWORD", "value": "hunter2X9kk"}]}
    text = json.dumps({"said_ns": 17900000000, "text": "1234", **secrets})
    redacted = redact_column("metadata", text)
    assert "hunter2X9kk" not in redacted
    assert json.loads(redacted)["said_ns"] == 17900000000
    assert json.loads(redacted)["text"] == "DIGITS"


@pytest.mark.usefixtures("rule_of_digits")
@pytest.mark.parametrize(
    ("column", "before", "after"),
    [
        ("days", '{"2025-01-01": 1234}', '{"2025-01-01": 1234}'),
        ("metadata", '{"said_ns":{"model":17900000000}}', '{"said_ns":{"model":17900000000}}'),
        (
            "data",
            '{"n":98765432109876543210987,"a":"1234"}',
            '{"n":98765432109876543210987,"a":"DIGITS"}',
        ),
        ("metadata", '{"key":"1234","job_id":"j-1234"}', '{"key":"DIGITS","job_id":"j-1234"}'),
        ("metadata", '{"customer 1234":"ä 1234"}', '{"customer DIGITS":"ä DIGITS"}'),
        ("files", '["1234", "ä"]', '["DIGITS", "ä"]'),
        ("updated_at", "2025-01-01 00:00:00.000+00:00", "2025-01-01 00:00:00.000+00:00"),
        ("model", "claude-opus-4-20250514[1m]", "claude-opus-4-20250514[1m]"),
        ("data", '{"n": 12345,"n":1e999, "a":"1234"}', '{"n": 12345,"n":1e999, "a":"DIGITS"}'),
        ("data", '{"job_id":[{"n":"1234"},"j-1234"]}', '{"job_id":[{"n":"DIGITS"},"j-1234"]}'),
        ("data", '{"a":"\\ud800 1234","b":"\ud800"}', '{"a":"\\ud800 DIGITS","b":"\ud800"}'),
        ("state", "電話番号は1234です", "電話番号はDIGITSです"),
        ("transcript_path", "/home/ana/Größe 1234/s-1234.jsonl", None),
        ("project", "/srv/customer-1234", None),
        (
            "data",
            '{"cwd":"/srv/1234","text":"/srv/1234"}',
            '{"cwd":"/srv/1234","text":"/srv/DIGITS"}',
        ),
        ("path", "see 1234/2", "see DIGITS/2"),
        ("folder", "/srv/1234\n1234", "/srv/DIGITS\nDIGITS"),
    ],
)
def test_only_keys_and_times_are_left_to_the_built_in_rules(
    column: str, before: str, after: str | None
) -> None:
    assert redact_column(column, before) == (before if after is None else after)


def test_names_of_fields_stay_whatever_the_rules_of_the_user_match(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = "[[redaction.rules]]\nname = 'word'\npattern = '[Pp]rotected'\nreplacement = 'WORD'\n"
    monkeypatch.setattr(redact, "_to_load", [])
    monkeypatch.setattr(redact, "_in_force", [redactor([parse(rule)])])
    text = '{"lifecycle":{"protected":true,"Protected":1},"title":"protected"}'
    after = '{"lifecycle":{"protected":true,"WORD":1},"title":"WORD"}'
    assert redact_column("metadata", text) == after


@pytest.mark.usefixtures("rule_of_digits")
def test_forgetting_a_text_keeps_numbers_that_a_rule_of_the_user_matches(db: Database) -> None:
    metadata = {"title": "about quetzalcoatl", "said_ns": {"title": 17900000000}}
    db.insert("sessions", {"id": "s1", "metadata": json.dumps(metadata), "status": "active"})
    assert remove_text(db, ForgetQuery.text("quetzalcoatl")) == 1
    (row,) = db.rows("SELECT metadata FROM sessions")
    assert json.loads(row["metadata"]) == {**metadata, "title": f"about {FORGOTTEN}"}


@pytest.mark.usefixtures("rule_of_digits")
def test_folders_are_found_whatever_the_rules_of_the_user_match(db: Database) -> None:
    folder, at = "/srv/shop 2024", "2026-01-01T00:00:00.000Z"
    worker = {"id": "w1", "hive": folder, "session_id": "s1"}
    db.insert("sessions", {"id": "s1", "status": "active", "project": folder})
    enter_profile(db, "ana", "s1", "swarm", folder, at)
    set_baseline(db, "ana", folder, "identity.md", "abc", 1)
    record_worker(db, worker)
    assert newest_open_session(db, folder) == "s1"
    assert others_in_folder(db, "ben", folder) == ["ana"]
    assert baseline(db, "ana", folder, "identity.md") == "abc"
    assert live_workers(db, folder) == {"w1"}
    assert hive_workers_of(db, "s1") == [(folder, "w1")]


@pytest.mark.usefixtures("rule_of_digits")
def test_names_are_found_whatever_the_rules_of_the_user_match(tmp_path: Path, db: Database) -> None:
    at = "2026-01-01T00:00:00.000Z"
    skill = ImportedSkill("deploy-2024", 2, 2, at, ("s1",), {"2026-01-01": 2})
    for _ in range(2):
        add_skill(db, skill, [])
    rate(db, "s1", "plan-2024.md", useful=True, time=at)
    (row,) = db.rows("SELECT skill, uses FROM imported_skills")
    assert tuple(row) == ("deploy-DIGITS", 4)
    with listings(tmp_path / "hive.db") as store:
        assert usefulness(store)[name_of("/srv/plan-2024.md")] == 1


def test_slots_alerts_and_counters_are_found_whatever_the_rules_of_the_user_match(
    tmp_path: Path, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = "[[redaction.rules]]\nname = 'word'\npattern = 'prune|workers|zero'\n"
    monkeypatch.setattr(redact, "_to_load", [])
    monkeypatch.setattr(redact, "_in_force", [redactor([parse(rule)])])
    at = "2026-01-01T00:00:00.000Z"
    for _ in range(2):
        record_slot(db, "prune_files", 7, 1)
        raise_alert(db, "hive_workers", "two workers", at)
        count(db, "zero_rows:prune_files", 1)
    assert is_executed(db, "prune_files", 7)
    assert last_slot(db, "prune_files") == 7
    assert active_alerts(tmp_path / "hive.db") == {"hive_workers": at}
    assert [row[0] for row in db.rows("SELECT text FROM alerts")] == ["two ***REDACTED***"]
    (counter,) = db.rows("SELECT name, value FROM counters")
    assert tuple(counter) == ("zero_rows:prune_files", 2)
    end_alert(db, "hive_workers", "2026-01-02T00:00:00.000Z")
    assert active_alerts(tmp_path / "hive.db") == {}
    job = Origin(id="j1", operation="observe", event_time_ns=1)
    add_version(db, job, "ana", "prune-2024.md", "abc", "text", "session")
    assert is_version(db, "ana", "prune-2024.md", "abc")
