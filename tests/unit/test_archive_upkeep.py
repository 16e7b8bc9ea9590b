"""The index of archives, their compression, verification and removal."""

import gzip
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from hivepipe.archive import index as indexes
from hivepipe.archive.catalog import Catalog
from hivepipe.archive.index import Index
from hivepipe.archive.upkeep import compress, rebuild_index, verify
from hivepipe.errors import ArchiveError, StoppedError
from hivepipe.files.folders import Folder
from hivepipe.redact.redactor import Redactor
from tests.archive_scene import AGENT, SESSION, Scene, full_disk, line, lines

MONTH_SECS = 31 * 86400


def filled(scene: Scene) -> Scene:
    """Archive three sessions, one of them with two subagents."""
    for number, session in enumerate((SESSION, "second", "third")):
        path = scene.project / f"{session}.jsonl"
        path.write_bytes(lines(4, number * 61))
        scene.extend(path)
    for agent in (AGENT, "b0"):
        path = scene.agent_path(agent)
        path.write_bytes(line(7, agent))
        scene.extend(path, agent_type="Explore")
    return scene


# ---- the index
def test_a_rebuilt_index_is_the_same(scene: Scene) -> None:
    before = filled(scene).files()
    assert len(scene.index()) == 5
    (scene.kept / "archive-index.json").unlink()
    scene.fresh()
    assert rebuild_index(scene.archives)
    assert scene.files() == before
    assert not rebuild_index(scene.archives)


DAMAGED_INDEXES = [
    *(b"", b"{", b"[]", b'{"archives": []}', b'{"archives": {"x": {"path": 7}}}'),
    json.dumps(
        {"archives": {SESSION: {
            **dict.fromkeys(("kind", "agent_id", "agent_type", "started_at"), ""),
            "session_id": SESSION, "path": "../../2026-01/x.jsonl",
        }}}
    ).encode(),
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGED_INDEXES, ids=range(6))
def test_a_damaged_index_loses_no_archive(scene: Scene, damage: bytes) -> None:
    before = filled(scene).files()
    (scene.kept / "archive-index.json").write_bytes(damage)
    scene.fresh()
    scene.path.write_bytes(lines(6))
    assert scene.extend() == 2
    assert scene.archived == lines(6)
    assert SESSION in scene.index()
    rebuild_index(scene.archives)
    assert scene.files()["archive-index.json"] == before["archive-index.json"]


def test_a_malformed_journal_line_is_skipped(scene: Scene) -> None:
    """A cloned repository may contain such a journal."""
    scene.kept.mkdir(parents=True)
    odd = (b"5", b"null", b'[["x"], null]', b'["x", 7]', b'{"a": 1, "b": 2}', b"")
    (scene.kept / ".archive-index.new").write_bytes(b"\n".join(odd))
    scene.path.write_bytes(lines(2))
    assert scene.extend() == 2
    assert set(scene.index()) == {SESSION}


@pytest.mark.parametrize(
    ("key", "session", "path"),
    [
        ("", "", "main-session/2026-01/x.jsonl"),  # its lock would be that of the index
        ("other", "x", "main-session/2026-01/x.jsonl"),
        ("x", "x", "main-session/2026-01/\0.jsonl"),
        ("x", "x", "main-session/2026-01/\n.jsonl"),
        ("x", "x", "subagent/../2026-01/x.jsonl"),
    ],
)
def test_an_invalid_index_entry_is_ignored(scene: Scene, key: str, session: str, path: str) -> None:
    filled(scene)
    entry = {**scene.index()[SESSION], "session_id": session, "path": path}
    (scene.kept / ".archive-index.new").write_text(json.dumps([key, entry]))
    scene.fresh()
    assert len(scene.archives.index.entries()) == 5
    assert compress(scene.archives, lambda: None) == 0


def test_files_that_are_no_archives_are_skipped(scene: Scene) -> None:
    filled(scene)
    for name, session in ((b"x", ""), (b"\xff", "x"), (b"a b", "x")):
        stem = os.fsdecode(os.fsencode(scene.kept / "main-session/2026-01") + b"/" + name)
        Path(f"{stem}.meta.json").write_text(json.dumps({"session_id": session}))
        Path(f"{stem}.jsonl").write_text("{}\n")
    assert not rebuild_index(scene.archives)
    assert len(list(verify(scene.archives))) == 5


def test_a_large_index_is_written_later_and_known_at_once(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexes, "SMALL_BYTES", 200)
    filled(scene)
    written = scene.index()
    assert 0 < len(written) < 5
    assert len(scene.archives.index.entries()) == 5
    scene.fresh()
    assert len(scene.archives.index.entries()) == 5
    with (scene.kept / ".archive-index.new").open("ab") as journal:
        journal.write(b'["torn", {"ki')
    os.utime(scene.kept / "archive-index.json", (0, 0))
    scene.path.write_bytes(lines(5))
    scene.extend()
    assert len(scene.index()) == 5
    assert (scene.kept / ".archive-index.new").read_bytes() == b""


def test_a_change_by_another_process_is_seen_and_rereads_no_large_index(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(scene)
    mine, theirs = (Index(str(scene.kept), scene.archives.manifest) for _ in range(2))
    assert len(mine.entries()) == len(theirs.entries()) == 5
    theirs.change({"second": None})
    assert mine.entries().keys() == theirs.entries().keys()
    monkeypatch.setattr(indexes, "SMALL_BYTES", 1)
    monkeypatch.setattr(indexes, "_parsed", lambda _data: pytest.fail("it was read again"))
    mine.change({SESSION: None})
    theirs.change({"third": None})
    assert len(mine.entries()) == len(theirs.entries()) == 2


def test_a_missing_index_entry_is_added_again(scene: Scene) -> None:
    filled(scene)
    scene.archives.index.change({SESSION: None})
    scene.extend(settled=True)
    assert SESSION in scene.index()


# ---- compression
def test_after_a_month_an_archive_is_compressed(scene: Scene) -> None:
    filled(scene)
    (scene.kept / "main-session/2026-01").joinpath("notes.txt").write_text("the user's own")
    assert compress(scene.archives, lambda: None) == 0
    scene.age_files(31)
    before = scene.archived
    assert compress(scene.archives, lambda: None) == 5
    assert not list(scene.kept.rglob("*.jsonl"))
    packed = scene.only(f"*_{SESSION}.jsonl.gz")
    assert gzip.decompress(packed.read_bytes()) == before
    assert time.time() - packed.stat().st_mtime > MONTH_SECS - 60  # the time of the last line
    assert packed.stat().st_mode & 0o777 == 0o600
    assert scene.index()[SESSION]["path"].endswith(".jsonl.gz")
    assert compress(scene.archives, lambda: None) == 0
    assert not rebuild_index(scene.archives)
    assert [problems for _, problems in verify(scene.archives) if problems] == []


def test_a_resumed_session_continues_its_compressed_archive(scene: Scene) -> None:
    assert packed(scene).extend(settled=True) == 0
    assert scene.only(f"*_{SESSION}.jsonl.gz")
    scene.path.write_bytes(lines(9))
    assert scene.extend() == 5
    assert scene.archived == lines(9)
    assert not list(scene.kept.rglob(f"*_{SESSION}.jsonl.gz"))
    assert scene.index()[SESSION]["path"].endswith(".jsonl")
    assert scene.meta["message_count"] == 9


def test_an_archive_that_is_unpacked_meanwhile_is_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = packed(scene).archives.index.entries()[SESSION]
    opened = Folder.open

    def unpacking(folder: Folder, name: str, flags: int = os.O_RDONLY) -> int:
        if name.endswith(".gz"):
            monkeypatch.undo()
            with scene.archives.opened(entry) as other:
                os.close(other.open_to_append())
        return opened(folder, name, flags)

    monkeypatch.setattr(Folder, "open", unpacking)
    with scene.archives.opened(entry) as kept, kept.open_to_read() as file:
        assert file.read() == lines(4)


def test_an_archive_that_cannot_be_compressed_does_not_stop_the_others(scene: Scene) -> None:
    filled(scene)
    scene.age_files(31)
    path = scene.only("*_second.jsonl")
    path.unlink()
    path.symlink_to(scene.path)
    os.utime(path, (0, 0), follow_symlinks=False)
    with pytest.raises(OSError, match="symbolic links"):
        compress(scene.archives, lambda: None)
    assert len(list(scene.kept.rglob("*.jsonl.gz"))) == 4
    assert len([entry for entry in scene.index().values() if entry["path"].endswith(".gz")]) == 4


def test_an_interrupted_compression_loses_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.archive.archive_files.COPY_BYTES", 500)
    filled(scene)
    scene.age_files(31)
    expected = {name: data for name, data in scene.files().items() if name.endswith(".jsonl")}
    calls = iter(range(7))

    def stop() -> None:
        if next(calls, None) is None:
            raise StoppedError

    with pytest.raises(StoppedError):
        compress(scene.archives, stop)
    assert list(scene.kept.rglob("*.gz"))
    assert list(scene.kept.rglob("*.jsonl"))
    compress(scene.archives, lambda: None)
    for name, data in expected.items():
        assert gzip.decompress((scene.kept / f"{name}.gz").read_bytes()) == data
    assert not rebuild_index(scene.archives)


def test_a_full_disk_is_not_filled_with_half_an_archive(scene: Scene) -> None:
    filled(scene)
    scene.age_files(31)
    before = scene.files()
    with full_disk(100), pytest.raises(OSError, match="File too large"):
        compress(scene.archives, lambda: None)
    assert scene.files() == before
    assert list(scene.kept.rglob("*.tmp")) == []
    assert compress(scene.archives, lambda: None) == 5
    scene.path.write_bytes(lines(9))
    with full_disk(100), pytest.raises(OSError, match="File too large"):
        scene.extend()  # it is unpacked first
    assert scene.only(f"*_{SESSION}.jsonl.gz")
    assert list(scene.kept.rglob("*.tmp")) == []
    assert scene.extend() == 5


def test_a_half_compressed_archive_counts_as_uncompressed(scene: Scene) -> None:
    filled(scene)
    path = scene.only(f"*_{SESSION}.jsonl")
    path.with_name(f"{path.name}.gz").write_bytes(b"torn")
    assert scene.extend() == 0
    scene.path.write_bytes(lines(5))
    assert scene.extend() == 1
    scene.age_files(31)
    compress(scene.archives, lambda: None)
    assert gzip.decompress(scene.only(f"*_{SESSION}.jsonl.gz").read_bytes()) == lines(5)


# ---- verification
def problems(scene: Scene) -> list[str]:
    scene.fresh()
    return [problem for _, found in verify(scene.archives) for problem in found]


def packed(scene: Scene) -> Scene:
    """Archive the sessions and compress them a month later."""
    filled(scene).age_files(31)
    assert compress(scene.archives, lambda: None) == 5
    scene.fresh()
    return scene


def test_every_fault_is_named(scene: Scene) -> None:
    filled(scene)
    path = scene.only(f"*_{SESSION}.jsonl")
    whole = path.read_bytes()

    def problems_after(change: bytes, mode: int = 0o600) -> list[str]:
        path.write_bytes(change)
        path.chmod(mode)
        return problems(scene)

    changed = problems_after(whole.replace(b"answer 2", b"ANSWER 2"))
    assert changed == ["its lines were changed"]
    assert problems_after(whole[:-10]) == ["10 bytes are missing"]
    assert problems_after(whole + b"half a line of a killed run") == []
    assert problems_after(whole, 0o644) == ["other users can read it: mode 0644, not 0600"]
    path.unlink()
    assert problems(scene) == ["its lines are missing"]
    assert problems_after(whole) == []
    assert len(list(verify(scene.archives))) == 5
    scene.path.write_bytes(lines(4).replace(b"answer 2", b"ANSWER 2"))
    assert problems(scene) == [
        "its transcript was changed later; the archive has the earlier content"
    ]
    scene.path.unlink()
    assert problems(scene) == []
    scene.archives.index.change({"second": None})
    assert problems(scene) == ["not in the index: `hivepipe archive rebuild-index`"]


def test_damaged_metadata_are_a_fault(scene: Scene) -> None:
    filled(scene)
    path = scene.only(f"*_{SESSION}.meta.json")
    whole = path.read_bytes()
    for source in (None, 5, {}, {"path": 7}):
        path.write_text(json.dumps({**json.loads(whole), "source": source}))
        (problem,) = problems(scene)
        assert problem.startswith("its metadata are missing or damaged"), source
    path.write_bytes(whole.replace(b"{", b'{"x":%s,' % (b"[" * 300 + b"]" * 300), 1))
    assert problems(scene) == ["its metadata were changed"]
    scene.path.write_bytes(lines(5))
    assert scene.extend(settled=True) == 1


def test_a_damaged_compressed_archive_is_a_fault_and_stops_no_other(scene: Scene) -> None:
    path = packed(scene).only(f"*_{AGENT}.jsonl.gz")
    path.write_bytes(path.read_bytes()[:-20])
    (problem,) = problems(scene)
    assert problem.startswith("its lines cannot be read:")
    scene.path.write_bytes(lines(9))
    assert scene.extend(settled=True) == 5
    assert scene.meta["message_count"] == 9
    scene.agent_path().write_bytes(line(7) + line(8))
    with pytest.raises(gzip.BadGzipFile):
        scene.extend(scene.agent_path(), agent_type="Explore")
    assert len(list(verify(scene.archives))) == 5


# ---- finding and removing
def test_an_archive_is_found_by_the_beginning_of_its_id(scene: Scene) -> None:
    filled(scene)
    find = scene.archives.find
    assert find(SESSION)[0] == find("7b1f")[0] == SESSION
    assert find(AGENT)[0] == find("a41c")[0] == f"{SESSION}/{AGENT}"
    with pytest.raises(ArchiveError, match="no archive"):
        find("nobody")
    with pytest.raises(ArchiveError, match="more than one"):
        find("")


def test_removing_a_session_leaves_none_of_its_files(scene: Scene) -> None:
    filled(scene)
    scene.archives.index.change({f"{SESSION}/b0": None})  # one that the index does not know
    removed = scene.archives.remove_sessions([SESSION])
    assert len(removed) == 3
    assert set(scene.index()) == {"second", "third"}
    left = [path for path in scene.kept.rglob("*") if path.is_file()]
    assert not [path for path in left if SESSION in path.name or AGENT in path.name]
    assert scene.archives.remove_sessions([SESSION]) == []
    scene.extend()
    assert scene.archived == lines(4)
    assert json.loads(scene.only(f"*_{SESSION}.meta.json").read_text())["message_count"] == 4


def test_forgetting_finds_the_first_lines_that_a_killed_process_wrote(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    monkeypatch.setattr("hivepipe.archive.append._Growth._chunk", killed)
    scene.path.write_bytes(lines(3))
    with pytest.raises(KilledError):
        scene.extend()
    assert scene.archived == lines(3)
    scene.fresh()
    scene.archives.remove_sessions([SESSION])
    assert list(scene.kept.rglob("*.jsonl")) == []


def test_removal_waits_while_the_session_is_archived(scene: Scene) -> None:
    """The session is forgotten while its first lines are archived."""
    scene.path.write_bytes(lines(3))
    forgotten, manifest = set[str](), scene.archives.manifest
    forgetting = Thread(
        target=lambda: Catalog(str(scene.kept), manifest).remove_sessions([SESSION])
    )

    class Slow(Redactor):
        def redact_line(self, raw: bytes) -> tuple[bytes, tuple[str, ...]]:
            if not forgotten:
                forgotten.add(SESSION)
                forgetting.start()
                forgetting.join(0.1)
            return raw, ()

    callbacks = replace(scene.callbacks(), redactor=Slow(), is_forgotten=forgotten.__contains__)
    with scene.source() as source:
        assert scene.archives.extend(source, callbacks) == 3
    forgetting.join()
    assert [*scene.kept.rglob(f"*{SESSION}*")] == []
    with scene.source() as source:
        assert scene.archives.extend(source, callbacks) == 0
