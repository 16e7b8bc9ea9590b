"""Files of the predecessor are imported once, as copies, and stay unchanged."""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hivepipe.archive.archives import Archives
from hivepipe.archive.upkeep import verify
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.files.manifest import Manifest
from hivepipe.operations.archive import archives_of
from hivepipe.operations.found_archives import import_found, unimported_archives
from hivepipe.operations.found_exports import KNOWN, LEFT, REFUSED, TAKEN, Row, import_exports
from hivepipe.operations.skill_exports import SkillExports
from hivepipe.operations.slow import at_once, manual_origin
from tests import predecessor_logs as old
from tests.conftest import Home
from tests.faults.harness import changing_calls, killed_at
from tests.rounds import rounds


@pytest.fixture
def home(private_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("HOME", str(tmp_path))
    private_home.path.mkdir(mode=0o700, exist_ok=True)
    archives_of.cache_clear()
    yield private_home
    archives_of.cache_clear()


def logs(home: Home) -> Path:
    return home.kept


def import_folder(home: Home, folder: Path) -> list[Row]:
    with at_once(str(home.path)) as context:
        return import_found(context, manual_origin("sweep_transcripts"), str(folder))


def outcomes(rows: list[Row]) -> dict[str, str]:
    return {Path(row.path).name: row.outcome for row in rows}


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_all_files_are_imported_once_and_stay_unchanged(
    home: Home, tmp_path: Path, is_elsewhere: bool
) -> None:
    folder = tmp_path / "moved" / "logs" if is_elsewhere else logs(home)
    before = old.make(folder)
    rows = import_folder(home, folder)
    assert outcomes(rows) == {
        "skill-usage.json": TAKEN,
        "skill-usage-index.json": LEFT,
        "archive-index.json": LEFT,
        "2025-01-10_14-30-00_abc123.jsonl": TAKEN,
        "2025-01-10_14-35-00_task-xyz.jsonl": TAKEN,
        "2025-02-01_08-00-00_fresh1.jsonl": TAKEN,
        "2024-12-24_20-00-00_xmas.jsonl.gz": TAKEN,
    }
    after = old.state(folder)
    for name, wanted in before.items():
        assert after.get(f"{name}.before-hivepipe", after.get(name)) == wanted
    again = import_folder(home, folder)
    assert {row.outcome for row in again} <= {KNOWN, LEFT}
    archives = archives_of(str(home.path))
    assert archives.index.entries().keys() == {"abc123", "abc123/task-xyz", "fresh1", "xmas"}
    if not is_elsewhere:
        aside = logs(home) / "archive-index.json.before-hivepipe"
        assert aside.read_bytes() == before["archive-index.json"][0]


def test_files_with_the_same_bytes_are_distinguished_by_their_sessions(home: Home) -> None:
    folder = logs(home) / "main-session" / "2025-01"
    agents = logs(home) / "subagent" / "architect" / "2025-01"
    one, other = "2025-01-10_14-30-00_abc123", "2025-01-11_09-00-00_def456"
    line = old.message_line("sameword")
    old.write(folder / f"{one}.jsonl", line, 400)
    old.write(folder / f"{other}.jsonl", line, 400)
    old.write(agents / f"{one}.jsonl", line, 400)
    old.write(agents / f"{one}.meta.json", old.as_json(old.SUBAGENT_META), 400)
    again = "2025-01-12_10-00-00_abc123"  # of the same session
    old.write(folder / f"{again}.jsonl", line, 400)
    rows = {row.path: row for row in import_folder(home, logs(home))}
    archives = archives_of(str(home.path))
    assert archives.index.entries().keys() == {"abc123", "def456", "abc123/task-xyz"}
    second = rows.pop(str(folder / f"{again}.jsonl"))
    assert {row.outcome for row in rows.values()} == {TAKEN}
    assert (second.outcome, second.key) == (KNOWN, "abc123")
    assert second.reason == f"the same as {folder / one}.jsonl"
    later = import_folder(home, logs(home))
    assert {(row.outcome, row.reason) for row in later} == {(KNOWN, "")}
    assert list(unimported_archives(str(home.path))) == []
    assert not any(problems for _, problems in verify(archives))


def test_moved_files_are_not_imported_again(home: Home, tmp_path: Path) -> None:
    old.make(tmp_path / "before")
    import_folder(home, tmp_path / "before")
    (tmp_path / "before").rename(tmp_path / "after")
    rows = [row for row in import_folder(home, tmp_path / "after") if row.kind == "archive"]
    assert len(rows) == 4
    assert {(row.outcome, row.reason) for row in rows} == {(KNOWN, "")}


def test_earlier_imports_are_read_once_and_hold_the_present_content_of_a_file(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "logs" / "main-session" / "2025-01"
    folder.mkdir(parents=True)
    texts = [b'{"type":"user","sessionId":"s%d","uuid":"u%d"}\n' % (n, n) for n in range(3)]
    for number, text in enumerate(texts):
        (folder / f"2025-01-10_14-30-00_s{number}.jsonl").write_bytes(text)
    calls, found = list[str](), Manifest.found
    monkeypatch.setattr(Manifest, "found", lambda own, kind: calls.append(kind) or found(own, kind))
    rows = import_folder(home, folder.parents[1])
    assert [row.outcome for row in rows] == [TAKEN] * 3
    assert calls.count("archive") == 1
    # The second file has new content now, and a third file has its former content twice.
    changed = folder / "2025-01-10_14-30-00_s1.jsonl"
    for name in ("2025-01-11_14-30-00_s1.jsonl", "2025-01-12_14-30-00_s1.jsonl"):
        (folder / name).write_bytes(texts[1])
    changed.write_bytes(texts[1] + texts[1].replace(b"u1", b"u9"))
    rows = import_folder(home, folder.parents[1])
    assert [(row.outcome, row.reason) for row in rows] == [
        (KNOWN, ""),
        (TAKEN, "it has no metadata"),
        (KNOWN, ""),
        (TAKEN, "it has no metadata"),
        (KNOWN, f"the same as {folder}/2025-01-11_14-30-00_s1.jsonl"),
    ]


def test_a_copy_keeps_the_predecessors_metadata_and_no_secret(home: Home) -> None:
    old.make(logs(home))
    rows = import_folder(home, logs(home))
    archives = archives_of(str(home.path))
    meta = archives.meta_of(archives.index.entries()["abc123/task-xyz"])
    assert meta
    counted = {"deliverables"}
    assert {name: meta[name] for name in old.SUBAGENT_META.keys() - counted} == {
        name: value for name, value in old.SUBAGENT_META.items() if name not in counted
    }
    assert meta["found"]["deliverables"] == ["api.md"]
    with archives.opened(archives.index.entries()["abc123"]) as kept, kept.open_to_read() as lines:
        text = lines.read()
    assert b"oldword" in text
    assert old.TOKEN.encode() not in text
    assert [*verify(archives)] == [(entry["path"], []) for entry in _by_key(archives)]
    assert [*unimported_archives(str(home.path))] == []
    (damaged,) = (row for row in rows if row.path.endswith(".gz"))
    assert damaged.reason == "its metadata are not JSON"


def _by_key(archives: object) -> list[dict[str, str]]:
    entries = archives.index.entries()  # type: ignore[attr-defined]
    return [entries[key] for key in sorted(entries)]


def test_a_copy_is_extended_by_its_session_and_keeps_its_metadata(home: Home) -> None:
    old.make(logs(home))
    import_folder(home, logs(home))
    claude = home.root / ".claude" / "projects" / "-shop"
    claude.mkdir(parents=True)
    transcript = claude / "fresh1.jsonl"
    line = {"sessionId": "fresh1", "cwd": str(home.project), "timestamp": "2025-02-01T08:00:00Z"}
    transcript.write_bytes(
        old.message_line("freshword", sessionId="fresh1") + old.message_line("more", **line)
    )
    before = old.state(logs(home))
    with at_once(str(home.path)) as context:
        from hivepipe.archive.sources import open_source  # noqa: PLC0415
        from hivepipe.operations.archive import callbacks_of  # noqa: PLC0415

        with open_source(str(transcript)) as source:
            callbacks = callbacks_of(context, manual_origin("archive_transcript"))
            assert archives_of(str(home.path)).extend(source, callbacks, settled=True) == 1
    archives = archives_of(str(home.path))
    assert archives.meta_of(archives.index.entries()["fresh1"])["found"]["path"]  # type: ignore[index]
    original = "main-session/2025-02/2025-02-01_08-00-00_fresh1.jsonl"
    assert old.state(logs(home))[original] == before[original]


def test_nothing_of_a_forgotten_session_is_left_in_the_manifest(home: Home) -> None:
    old.make(logs(home))
    import_folder(home, logs(home))
    path = home.path / "manifest.db"
    assert b"api.md" not in path.read_bytes()
    with closing(sqlite3.connect(path)) as db, db:  # as before 2026-11-25
        db.execute("UPDATE found SET meta = ?", (json.dumps(old.SUBAGENT_META),))
    assert b"api.md" in path.read_bytes()
    home.command("forget", "abc123", "--yes")
    assert b"api.md" not in path.read_bytes()
    assert KNOWN in outcomes(import_folder(home, logs(home))).values()


@pytest.mark.parametrize(
    "meta",
    [b"", b"null", b"[]", b'{"session_id": 7}', b'{"session_id": "../../etc"}', b"\xff\xfe", b"{}"],
)
def test_a_transcript_with_invalid_metadata_is_imported(home: Home, meta: bytes) -> None:
    old.write(logs(home) / f"{old.MAIN}.jsonl", old.message_line("word"), 400)
    old.write(logs(home) / f"{old.MAIN}.meta.json", meta, 400)
    (row,) = import_folder(home, logs(home))
    assert (row.outcome, row.key) == (TAKEN, "abc123")


def test_hostile_values_of_metadata_change_no_type(home: Home) -> None:
    meta = {"session_id": "abc123", "tokens": 5, "tools": [], "archive": 1, "source": {"path": 1}}
    old.write(logs(home) / f"{old.MAIN}.jsonl", old.message_line("word"), 400)
    old.write(logs(home) / f"{old.MAIN}.meta.json", old.as_json(meta), 400)
    import_folder(home, logs(home))
    archives = archives_of(str(home.path))
    found = archives.meta_of(archives.index.entries()["abc123"])
    assert found
    assert isinstance(found["tokens"], dict)
    assert isinstance(found["source"]["path"], str)


def test_unreadable_files_are_refused(home: Home) -> None:
    victim = home.project / "victim"
    victim.write_bytes(old.message_line("mine"))
    folder = logs(home) / "main-session" / "2025-01"
    folder.mkdir(parents=True)
    (folder / "2025-01-01_00-00-00_link.jsonl").symlink_to(victim)
    (folder / "2025-01-01_00-00-00_empty.jsonl").touch()
    (folder / "2025-01-01_00-00-00_broken.jsonl.gz").write_bytes(b"\x1f\x8b no")
    os.mkfifo(folder / "2025-01-01_00-00-00_pipe.jsonl")
    rows = import_folder(home, logs(home))
    assert len(rows) == 4
    assert {row.outcome for row in rows} == {REFUSED}
    assert archives_of(str(home.path)).index.entries() == {}
    assert len([*unimported_archives(str(home.path))]) == 4


def test_an_export_has_old_and_new_skills_and_keeps_the_old_file(home: Home) -> None:
    before = old.make(logs(home))
    export_after_a_use(home)
    SkillExports(str(home.path)).write()
    export = json.loads((logs(home) / "skill-usage.json").read_text())["skills"]
    assert export[old.SKILL]["count"] == 43
    assert export[old.SKILL]["success_rate"] == round(41 / 43, 4)
    assert {"abc123", "def456", "0ld", "s"} == set(export[old.SKILL]["sessions"])
    assert len(export[old.SKILL]["invocations"]) == 3
    assert old.TOKEN not in json.dumps(export)
    assert export["brainstorming"]["count"] == 3
    after = old.state(logs(home))
    for name in ("skill-usage.json", "skill-usage-index.json"):
        assert after[f"{name}.before-hivepipe"] == before[name]


def export_after_a_use(home: Home) -> None:
    add_skill_use(home)
    SkillExports(str(home.path)).write()


def add_skill_use(home: Home) -> None:
    sql = """
        INSERT INTO skill_uses (skill, kind, session_id, success, arguments, created_at)
        VALUES (:skill, 'tool', 's', 1, '', '2026-11-20T23:00:00.000Z')
    """
    with closing(Database(home.database)) as db, db.transaction():
        db.execute(sql, {"skill": old.SKILL})


def test_a_later_version_of_a_file_counts_once(home: Home, tmp_path: Path) -> None:
    old.make(tmp_path / "a")
    import_exports(str(home.path), str(tmp_path / "a"))
    later = json.loads(json.dumps(old.USAGE))
    later["skills"][old.SKILL]["count"] = 50
    old.write(tmp_path / "b" / "skill-usage.json", old.as_json(later), 0)
    import_exports(str(home.path), str(tmp_path / "b"))
    with listings(home.database) as store:
        (row,) = store.rows("SELECT * FROM imported_skills WHERE skill = :s", {"s": old.SKILL})
    assert row["uses"] == 50


def test_an_export_that_the_user_changed_is_kept(home: Home) -> None:
    export_after_a_use(home)
    path = logs(home) / "skill-usage.json"
    path.write_text(path.read_text().replace("{", '{"note": "mine",', 1))
    before = path.read_bytes()
    export_after_a_use(home)
    assert path.read_bytes() == before
    assert not list(logs(home).glob("*.before-hivepipe"))


def test_an_export_without_a_manifest_is_overwritten(home: Home) -> None:
    export_after_a_use(home)
    (home.path / "manifest.db").unlink()
    export_after_a_use(home)
    export = json.loads((logs(home) / "skill-usage.json").read_text())["skills"]
    assert export[old.SKILL]["count"] == 2
    assert not list(logs(home).glob("skill-usage.json.*"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "skills"),
        (b"[]", "skills"),
        (b'{"skills": 7}', "skills"),
        (b'{"skills": {"x": 7}}', "not an object"),
        (b'{"skills": {"x": {"count": -1}}}', "count"),
        (b'{"skills": {"x": {"count": 1e400}}}', ""),
    ],
)
def test_an_invalid_export_is_refused(home: Home, text: bytes, reason: str) -> None:
    old.write(logs(home) / "skill-usage.json", text, 10)
    rows = import_exports(str(home.path), str(logs(home)))
    (refused,) = (row for row in rows if row.outcome == REFUSED)
    assert reason in refused.reason


def test_an_import_killed_at_any_moment_is_continued(home: Home, tmp_path: Path) -> None:
    before = old.make(logs(home))
    add_skill_use(home)
    shutil.copytree(home.root, tmp_path / "kept")

    def reset() -> None:
        shutil.rmtree(home.root)
        shutil.copytree(tmp_path / "kept", home.root)

    def work() -> None:
        SkillExports(str(home.path)).write()
        import_folder(home, logs(home))

    calls = changing_calls(home.root, work)
    assert calls
    for call in calls[:: max(len(calls) // rounds(12), 1)]:
        reset()
        assert killed_at(call, work)
        assert not killed_at(0, work)  # not in this process, whose caches would save calls
        assert_imported(home, before)


def assert_imported(home: Home, before: old.State) -> None:
    """Assert that everything was imported once and that the predecessor's files are unchanged."""
    archives = Archives(str(home.kept), Manifest(str(home.path)))
    assert archives.index.entries().keys() == {"abc123", "abc123/task-xyz", "fresh1", "xmas"}
    assert all(not problems for _, problems in verify(archives))
    export = json.loads((logs(home) / "skill-usage.json").read_text())["skills"]
    assert (export[old.SKILL]["count"], export["brainstorming"]["count"]) == (43, 3)
    after = old.state(logs(home))
    for name, wanted in before.items():
        assert after.get(f"{name}.before-hivepipe", after.get(name)) == wanted
    with archives.opened(archives.index.entries()["abc123"]) as kept, kept.open_to_read() as lines:
        assert len(lines.readlines()) == 2
