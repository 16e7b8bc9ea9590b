"""Any transcript is archived, and any status.json is recorded, without harm to others."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe.archive import append, reading
from hivepipe.costs.price_table import built_in
from hivepipe.db.database import Database
from hivepipe.events.job_plan import Job
from hivepipe.jobs.envelope import compose, envelope_of
from hivepipe.orchestrator import records
from hivepipe.orchestrator.status import WORDS, parse
from hivepipe.transcripts.description import describe
from hivepipe.transcripts.totals import Totals
from tests.archive_scene import TOKEN, Scene, line, lines, totals_of
from tests.faults.oracle import FIRST_NS
from tests.fuzz.inputs import altered, as_json, broken, fuzzed, replayed, values

SAMPLES = Path(__file__).resolve().parents[1] / "transcripts"
PRICES = built_in()
SAMPLE_LINES = [
    json.loads(raw)
    for path in sorted(SAMPLES.glob("*.jsonl"))
    for raw in path.read_bytes().splitlines()
    if raw.startswith(b"{") and raw.endswith(b"}") and len(raw) < 5000
][:60]
SAMPLE_LINES.append(json.loads(line(1, f"key {TOKEN}")))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make lines of a small transcript cross reads and chunks."""
    monkeypatch.setattr("hivepipe.archive.sources.user_folder", lambda: str(tmp_path))
    monkeypatch.setattr(reading, "CHUNK_BYTES", 700)
    monkeypatch.setattr(append, "PORTION_BYTES", 1500)


def check_transcript(folder: Path, data: bytes) -> None:
    """Archive the data between good lines. The good lines are kept once, and no secret is kept."""
    for name in (".claude", "shop"):
        shutil.rmtree(folder / name, ignore_errors=True)
    scene = Scene(folder)
    before, after = lines(2), lines(2, 60) + line(62, f"key {TOKEN}")
    scene.path.write_bytes(before + data)
    scene.extend()
    scene.path.write_bytes(before + data + b"\n" + after)
    scene.extend()
    scene.extend(settled=True)
    archived = scene.archived
    assert TOKEN.encode() not in archived
    kept = archived.splitlines()
    assert kept[:2] == before.splitlines()
    assert kept[-3:-1] == after.splitlines()[:2]
    assert scene.meta["message_count"] >= 3
    assert json.loads(scene.only("archive-index.json").read_bytes())
    totals = totals_of(data.split(b"\n"))
    assert Totals.load(totals.dump()) == totals
    json.dumps(describe(totals, PRICES), ensure_ascii=False).encode()


@fuzzed
@given(
    data=broken(
        st.lists(altered(SAMPLE_LINES).map(as_json), min_size=1, max_size=3).map(b"\n".join)
    )
)
def test_any_transcript_is_archived(tmp_path: Path, data: bytes) -> None:
    check_transcript(tmp_path, data)


@replayed("transcripts")
def test_a_transcript_that_failed_once(tmp_path: Path, data: bytes) -> None:
    check_transcript(tmp_path, data)


STATUSES = [
    {"status": "working", "progress": "3 of 5", "timestamp": "2026-01-10T12:00:00Z"},
    {"status": "need_input", "question": "Which?", "options": ["a", "b"], "context": "x"},
    {"status": "done", "committed": True, "parked": True, "files_changed": ["a"], "result": "x"},
    {"status": "error", "error": "x", "attempted": "y", "suggestion": "z"},
    {"status": "context_full", "progress": "half", "remaining": "half"},
]  # fmt: skip


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    made = Database(tmp_path_factory.mktemp("hive") / "hive.db")
    yield made
    made.close()


def check_status(db: Database, data: bytes) -> None:
    """Parse, display, encode and store a status."""
    status = parse(data, FIRST_NS)
    assert status.word in ("", *WORDS)
    assert status.word or status.problems
    assert status.reported_ns >= FIRST_NS
    content = records.content_of(status)
    for shown in (*status.problems, status.text("question"), *status.texts("options")):
        shown.encode()
    sent = compose("0" * 32, Job("record_status", {"content": content}, "w"), FIRST_NS)
    assert envelope_of(json.loads(sent.envelope)).payload["content"] == content
    with db.transaction():
        db.execute("SELECT :content", {"content": content})
        db.execute("SELECT :said", {"said": status.text("progress")})


@fuzzed
@given(data=broken((altered(STATUSES) | values).map(as_json)))
def test_any_status_is_recorded(db: Database, data: bytes) -> None:
    check_status(db, data)


@replayed("statuses")
def test_a_status_that_failed_once(db: Database, data: bytes) -> None:
    check_status(db, data)
