"""Archives that hivepipe did not create, or that were edited, are not changed."""

import gzip
import json
import os
import time
from pathlib import Path

import pytest

from hivepipe.archive.upkeep import adopt, compress, rebuild_index, verify
from hivepipe.operations.archive import archives_of
from hivepipe.stack import supervisor
from tests.archive_scene import SESSION, Scene, line, lines

DAY = 86_400
NAME = f"main-session/2026-01/2026-01-10_00-00-00_{SESSION}"
FOREIGN_META = {"session_id": SESSION, "message_count": 12, "duration_seconds": 420}


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Scene(tmp_path)


def write_foreign_archive(
    scene: Scene, name: str = NAME, text: bytes = b'{"theirs": 1}\n'
) -> dict[str, object]:
    path = scene.kept / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    path.with_suffix(".meta.json").write_text(json.dumps(FOREIGN_META))
    for each in (path, path.with_suffix(".meta.json")):
        os.utime(each, (time.time() - 400 * DAY,) * 2)
    return state(scene, name)


def state(scene: Scene, name: str = NAME) -> dict[str, object]:
    """Return the bytes, mode and time of every file of an archive."""
    found = {}
    for path in (scene.kept / name).parent.iterdir():
        if path.name.startswith(Path(name).name + "."):
            status = path.lstat()
            found[path.name] = (path.read_bytes(), status.st_mode, status.st_mtime_ns)
    return found


def prune(scene: Scene, days: float = 365) -> list[str]:
    keys = sorted(scene.archives.index.entries())
    before = time.time() - days * DAY
    return [key for key in keys if scene.archives.remove_if_older(key, before)]


def test_a_foreign_archive_is_not_pruned_compressed_or_listed(scene: Scene) -> None:
    before = write_foreign_archive(scene)
    rebuild_index(scene.archives)
    assert scene.archives.index.entries() == {}
    assert prune(scene) == []
    assert compress(scene.archives, lambda: None) == 0
    assert state(scene) == before


def test_an_archive_avoids_the_name_of_a_foreign_one(scene: Scene) -> None:
    before = write_foreign_archive(scene)
    scene.path.write_bytes(lines(3))
    scene.extend(settled=True)
    (entry,) = scene.index().values()
    assert entry["path"] == f"{NAME}_{SESSION}.jsonl"
    assert (scene.kept / entry["path"]).read_bytes() == lines(3)
    assert state(scene) == before
    scene.path.write_bytes(lines(5))
    scene.fresh()
    scene.extend(settled=True)
    assert (scene.kept / entry["path"]).read_bytes() == lines(5)
    assert state(scene) == before


def test_own_archives_are_pruned_and_removed_from_the_manifest(scene: Scene) -> None:
    scene.path.write_bytes(lines(3))
    scene.extend(settled=True)
    assert scene.archives.manifest.made() >= {f"{NAME}.jsonl"}
    scene.age_files(366)
    assert prune(scene) == [SESSION]
    assert f"{NAME}.jsonl" not in scene.archives.manifest.made()
    assert not (scene.kept / "main-session/2026-01").exists()


@pytest.mark.parametrize("edit", ["append", "change", "cut", "meta"])
def test_an_edited_archive_is_kept(scene: Scene, edit: str) -> None:
    packed = edit in ("change", "meta")
    scene.path.write_bytes(lines(3))
    scene.extend(settled=True)
    if packed:
        scene.age_files(31)
        assert compress(scene.archives, lambda: None) == 1
    edit_archive(scene, edit, packed)
    scene.age_files(400)
    before = state(scene)
    assert compress(scene.archives, lambda: None) == 0
    assert prune(scene) == []
    assert state(scene) == before
    assert any(problems for _, problems in verify(scene.archives))


def edit_archive(scene: Scene, edit: str, packed: bool) -> None:
    if edit == "meta":
        path = scene.kept / f"{NAME}.meta.json"
        path.write_text(path.read_text().replace('"task_id"', '"note":"mine","task_id"', 1))
        if "mine" not in path.read_text():
            path.write_text(path.read_text().replace("{", '{"note":"mine",', 1))
        return
    path = scene.kept / f"{NAME}.jsonl{'.gz' if packed else ''}"
    text = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    text = {
        "append": text + b'{"note": "mine"}\n',
        "change": text.replace(b"answer 1", b"answer 7"),
        "cut": text[:-40],
    }[edit]
    path.write_bytes(gzip.compress(text) if packed else text)


@pytest.mark.parametrize("edit", ["append", "change", "cut"])
def test_a_continued_session_does_not_change_its_edited_archive(scene: Scene, edit: str) -> None:
    scene.path.write_bytes(lines(3))
    scene.extend(settled=True)
    edit_archive(scene, edit, packed=False)
    before = state(scene)
    scene.path.write_bytes(lines(6))
    scene.fresh()
    scene.extend(settled=True)
    assert state(scene) == before
    (entry,) = scene.index().values()
    assert (scene.kept / entry["path"]).read_bytes() == lines(6)


def test_archives_of_a_version_without_a_manifest_are_adopted(scene: Scene) -> None:
    scene.path.write_bytes(lines(3))
    scene.extend(settled=True)
    (scene.home / "manifest.db").unlink()
    (scene.home / "hive.db").touch()
    theirs = f"{NAME}_theirs"
    before = write_foreign_archive(scene, theirs)
    forged = scene.kept / f"{NAME}_forged.jsonl"
    forged.write_bytes(line(1))
    meta = json.loads((scene.kept / f"{NAME}.meta.json").read_bytes())
    forged.with_suffix(".meta.json").write_text(json.dumps({**meta, "session_id": "forged"}))
    scene.fresh()
    assert scene.archives.manifest.adopts
    assert adopt(scene.archives) == 1
    assert scene.archives.manifest.made() == {f"{NAME}.jsonl"}
    scene.age_files(400)
    rebuild_index(scene.archives)
    assert prune(scene) == [SESSION]
    assert forged.exists()
    assert [*state(scene, theirs)] == [*before]


def test_an_archive_that_1_0_0_makes_after_a_command_of_this_version_is_adopted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = str(scene.home)
    (scene.home / "hive.db").touch()
    with monkeypatch.context() as patch:
        patch.setattr(supervisor, "identity_of", lambda _stack: "hivepipe-1.0.0-277da868")
        assert not archives_of.__wrapped__(home).manifest.made()
        assert archives_of.__wrapped__(home).manifest.adopts
        scene.path.write_bytes(lines(3))
        scene.extend(settled=True)
        scene.archives.manifest.disown(f"{NAME}.jsonl")  # 1.0.0 knows no manifest
    manifest = archives_of.__wrapped__(home).manifest
    assert f"{NAME}.jsonl" in manifest.made()
    assert not manifest.adopts


def test_a_foreign_index_is_kept_under_another_name(scene: Scene) -> None:
    scene.archives.manifest.begin()
    assert not scene.archives.manifest.adopts, "a new home adopts nothing"
    scene.kept.mkdir(parents=True)
    theirs = scene.kept / "archive-index.json"
    theirs.write_text('{"archives": [{"id": "abc123"}]}')
    scene.path.write_bytes(lines(3))
    scene.extend(settled=True)
    assert SESSION in scene.index()
    aside = scene.kept / "archive-index.json.before-hivepipe"
    assert aside.read_text() == '{"archives": [{"id": "abc123"}]}'


def test_an_edited_index_is_kept_and_loses_nothing(scene: Scene) -> None:
    scene.path.write_bytes(lines(3))
    scene.extend(settled=True)
    index = scene.kept / "archive-index.json"
    index.write_text(index.read_text().replace('"schema": 1', '"schema": 1, "note": "mine"'))
    before = index.read_bytes()
    agent = scene.agent_path()
    agent.write_bytes(lines(2))
    scene.extend(agent, settled=True)
    scene.fresh()
    assert len(scene.archives.index.entries()) == 2
    rebuild_index(scene.archives)
    scene.fresh()
    assert len(scene.archives.index.entries()) == 2
    assert index.read_bytes() == before
