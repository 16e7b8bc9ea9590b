"""A backup holds everything in a home; a restore brings back all of it or changes nothing."""

import errno
import fcntl
import gzip
import io
import json
import os
import re
import select
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hivepipe.cli import backup as commands
from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.errors import BackupError, LockHeldError
from hivepipe.files.logs import claim_names, is_own
from hivepipe.files.manifest import Manifest
from hivepipe.home import kept_folder
from hivepipe.maintenance import backup
from hivepipe.maintenance.backup import back_up, restore
from hivepipe.operations.skill_exports import SkillExports
from hivepipe.redact import audit_log
from hivepipe.redact.home_key import FILE as KEY
from hivepipe.redact.home_key import key_of
from hivepipe.stack import lifecycle
from hivepipe.stack.runtime_folder import Stack
from tests.conftest import CLI, MEMORY, Home, Server, Writer, fire_all, folder_of_homes, until
from tests.payloads import SESSION_START, changed
from tests.payloads import USER_PROMPT_SUBMIT as PROMPT

LINE = '{"type": "user"}\n'
ONE = "main-session/2026-11/one.jsonl"


def fill(home: Home) -> None:
    (home.kept / ONE).parent.mkdir(parents=True)
    (home.kept / ONE).write_text(LINE)
    (home.path / "config.toml").write_text("idle_secs = 7\n")


@pytest.fixture
def full(private_home: Home, redis_server: Server, writer: Writer) -> Iterator[Home]:
    """A home with rows, an archive and settings; its writer runs."""
    writer.start()
    fire_all([changed(SESSION_START, source="startup"), PROMPT], private_home.env)
    until(lambda: private_home.count("prompts") == 1, "not stored")
    fill(private_home)
    key_of(str(private_home.path))
    yield private_home
    if writer.is_running:
        writer.end()


@pytest.fixture
def saved(private_home: Home) -> tuple[Home, Path]:
    """A home with a row, an archive and settings, and its backup."""
    with closing(Database(private_home.database)) as db:
        db.execute("INSERT INTO counters VALUES ('kept', 1)", {})
    fill(private_home)
    target = private_home.root / "b.tar.gz"
    back_up(str(private_home.path), target)
    return private_home, target


def dump(home: Home) -> list[str]:
    with closing(sqlite3.connect(home.database)) as db:
        return sorted(db.iterdump())  # sorted, because VACUUM reorders indexes and triggers


def moved_aside(home: Home) -> Path:
    (aside,) = (home.path / "backups").glob("before-restore-*")
    return aside


def test_a_backup_during_writes_is_restored_exactly(
    full: Home, writer: Writer, redis_server: Server
) -> None:
    target = full.root / "b.tar.gz"
    with closing(sqlite3.connect(full.database, timeout=10)) as busy:
        busy.execute("BEGIN IMMEDIATE")  # a plain copy of the file would be inconsistent
        output = full.command("backup", str(target))
        busy.execute("ROLLBACK")
    assert f"{target}: " in output
    assert target.stat().st_mode & 0o777 == 0o600
    before, key = dump(full), (full.path / KEY).read_bytes()
    refused = full.command("restore", str(target), expect=1)
    assert "the stack is running" in refused
    fire_all([changed(PROMPT, prompt="after the backup")], full.env)
    writer.end()
    redis_server.end()
    assert "--replace moves it to another folder" in full.command("restore", str(target), expect=1)
    two = "main-session/2026-11/two.jsonl"
    (full.kept / two).write_text("later\n")
    (full.path / KEY).write_bytes(b"another key")
    (full.path / "search.db").write_bytes(b"an index of later lines")
    output = full.command("restore", str(target), "--replace")
    assert dump(full) == before
    assert (full.path / KEY).read_bytes() == key
    assert (moved_aside(full) / KEY).read_bytes() == b"another key"
    assert not (full.path / "search.db").exists()
    assert (full.kept / ONE).read_text() == LINE
    assert not (full.kept / two).exists()
    aside = moved_aside(full)
    assert str(aside) in output
    assert (aside / full.kept.name / two).exists()
    assert full.database.stat().st_mode & 0o777 == 0o600
    assert not list(full.path.glob(".restore-*"))


@pytest.mark.parametrize("has_database", [False, True])
def test_a_backup_is_restored_into_an_empty_home(
    saved: tuple[Home, Path], has_database: bool
) -> None:
    home, target = saved
    other = home.another("other")
    if has_database:  # as `init` leaves a home
        Database(other.database).close()
    os.umask(0)
    other.command("restore", str(target), "--with-settings")
    assert dump(other) == dump(home)
    assert (other.path / "config.toml").read_text() == "idle_secs = 7\n"
    kept = other.path / "archive" / ONE
    modes = [path.stat().st_mode & 0o777 for path in (kept, *kept.parents[:2])]
    assert modes == [0o600, 0o700, 0o700]
    assert not list(other.path.glob("backups/*")), "an unused database was moved aside"
    assert not list(other.path.glob("hive.db-*")), "files of the unused database are left"


def test_a_restore_does_not_need_a_safe_extractall(
    saved: tuple[Home, Path], monkeypatch: Any
) -> None:
    """Python before 3.11.4 has no safe extractall; Debian 12 ships such a version."""

    def extractall(self: tarfile.TarFile, path: str = ".", members: Any = None) -> None:
        raise AssertionError("it would follow a path that leads out")

    home, target = saved
    other = home.another("other")
    monkeypatch.setattr(tarfile.TarFile, "extractall", extractall)
    restore(str(other.path), target, replace=False)
    assert dump(other) == dump(home)


def test_a_backup_overwrites_nothing_and_needs_no_name(saved: tuple[Home, Path]) -> None:
    home, target = saved
    target.write_text("mine")
    assert "nothing is overwritten" in home.command("backup", str(target), expect=1)
    assert target.read_text() == "mine"
    report = json.loads(home.command("backup", "--json"))
    assert Path(report["file"]).parent == home.project
    assert report["bytes"] == Path(report["file"]).stat().st_size
    assert not list(home.path.glob(".backup-*"))


def repacked(source: Path, target: Path, change: Any, loop: str = "") -> Path:
    """Write a backup again with changed members, and optionally a link to its own folder."""
    with tarfile.open(source) as old, tarfile.open(target, "w:gz") as new:
        for member in old.getmembers():
            file = old.extractfile(member)
            data = change(member, file.read() if file else b"")
            member.size = len(data)
            new.addfile(member, io.BytesIO(data))
        if loop:
            link = tarfile.TarInfo(loop)
            link.type, link.linkname = tarfile.SYMTYPE, "."
            new.addfile(link)
    return target


@pytest.mark.parametrize("kind", ["truncated", "changed", "outside", "foreign", "newer", "loop"])
def test_a_damaged_or_hostile_backup_changes_nothing(saved: tuple[Home, Path], kind: str) -> None:
    home, whole = saved
    bad = home.root / "bad.tar.gz"
    before = dump(home)

    def change(member: tarfile.TarInfo, data: bytes) -> bytes:
        if kind == "changed" and member.name == f"kept/{ONE}":
            return b"other\n"
        if kind == "outside" and member.name == "config.toml":
            member.name = "../../escaped"
        if kind == "newer" and member.name == "manifest.json":
            return data.replace(b'"format": 2', b'"format": 9')
        return data

    if kind == "truncated":
        bad.write_bytes(whole.read_bytes()[:-200])
    elif kind == "foreign":
        with tarfile.open(bad, "w:gz"):
            pass
    else:
        repacked(whole, bad, change, "kept/loop" if kind == "loop" else "")
    output = home.command("restore", str(bad), "--replace", expect=1)
    assert output.startswith("hivepipe: ")
    assert kind != "loop" or "kept/loop is not in its manifest" in output
    assert output.count("\n") == 1
    assert dump(home) == before
    assert not (home.root / "escaped").exists()
    assert not (home.path / "backups").exists() or not os.listdir(home.path / "backups")


# ---- without a stack
def test_a_file_that_cannot_be_read_is_named(
    saved: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = saved
    (home.kept / "of-root.json").write_text("{}")

    def regular(path: Path) -> int:
        if path.name == "of-root.json":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return os.open(path, os.O_RDONLY)

    monkeypatch.setattr(backup, "regular", regular)
    with pytest.raises(BackupError, match=r"of-root\.json cannot be read: Permission denied"):
        back_up(str(home.path), home.root / "c.tar.gz")
    assert not (home.root / "c.tar.gz").exists()


def test_a_damaged_database_can_be_replaced_by_a_restore(saved: tuple[Home, Path]) -> None:
    home, target = saved
    before = dump(home)
    home.database.write_bytes(b"torn" * 5_000)
    (home.path / "config.toml").write_text("idle_secs = 8\n")
    found = restore(str(home.path), target, replace=True, with_settings=True)
    aside = Path(found["before"])
    assert dump(home) == before
    assert (aside / "hive.db").read_bytes().startswith(b"torn")
    assert (aside / "config.toml").read_text() == "idle_secs = 8\n"


def test_settings_alone_are_not_overwritten_either(saved: tuple[Home, Path]) -> None:
    home, target = saved
    other = home.another("other")
    kept = Path(kept_folder(str(other.path)))
    kept.mkdir(parents=True)
    (kept / ".gitignore").write_text("*\n")  # this file alone does not count as contents
    (other.path / "config.toml").write_text("idle_secs = 8\n")
    before = sorted(os.listdir(other.path))
    with pytest.raises(BackupError, match="toml exists already"):
        restore(str(other.path), target, replace=False, with_settings=True)
    assert sorted(os.listdir(other.path)) == before


def fill_disk(monkeypatch: pytest.MonkeyPatch, below: str = "/") -> None:
    """Report a full disk for this folder."""
    usage = shutil.disk_usage
    full = shutil._ntuple_diskusage(1 << 40, 1 << 40, backup.LEFT_FREE_BYTES + 1000)  # type: ignore[attr-defined]
    monkeypatch.setattr(
        shutil, "disk_usage", lambda at: full if str(at).startswith(below) else usage(at)
    )


@pytest.mark.skipif(not MEMORY.is_dir(), reason="no second file system is at hand")
def test_the_database_may_be_on_another_file_system(
    saved: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """HIVEPIPE_DB is on another file system, and its folder does not exist yet."""
    os.umask(0o077)  # as the command does
    home, target = saved
    other = home.another("other")
    another = MEMORY if folder_of_homes() == "/tmp" else Path("/tmp")
    with tempfile.TemporaryDirectory(dir=another) as elsewhere:
        assert os.stat(elsewhere).st_dev != home.root.stat().st_dev
        database = Path(elsewhere, "new", "hive.db")
        other.env["HIVEPIPE_DB"] = str(database)
        other.use_environment(monkeypatch)
        found = restore(str(other.path), target, replace=False, with_settings=True)
        assert found["before"] is None
        found = restore(str(other.path), target, replace=True, with_settings=True)
        aside = Path(found["before"])
        assert os.listdir(database.parent) == ["hive.db"]
        assert database.stat().st_mode & 0o777 == 0o600
        assert sorted(os.listdir(aside)) == ["archive", "config.toml", "hive.db"]

        before = sorted(home.root.rglob("*"))
        fill_disk(monkeypatch, elsewhere)
        with pytest.raises(BackupError, match=r"no room for hive\.db"):
            restore(str(other.path), target, replace=True, with_settings=True)
        assert os.listdir(database.parent) == ["hive.db"]
        assert sorted(home.root.rglob("*")) == before


def test_a_file_system_without_hard_links_takes_a_backup(
    saved: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")  # as vfat and exfat do

    monkeypatch.setattr(os, "link", refused)
    home, there = saved
    target = home.root / "stick.tar.gz"
    back_up(str(home.path), target)
    assert tarfile.is_tarfile(target)
    for each in (there, target):
        with pytest.raises(BackupError, match="nothing is overwritten"):
            back_up(str(home.path), each)
    assert not list(home.root.glob("*.tmp"))


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["one.jsonl"], "one.jsonl.gz"),
        (["one.jsonl.gz"], "one.jsonl"),
        (["one.jsonl", "one.jsonl.gz"], "one.jsonl"),
        (["one.jsonl", "one.jsonl.gz"], "one.jsonl.gz"),
    ],
)
def test_an_archive_that_is_compressed_or_unpacked_meanwhile_is_in_the_backup(
    saved: tuple[Home, Path],
    monkeypatch: pytest.MonkeyPatch,
    before: list[str],
    after: str,
    late: bool,
) -> None:
    """It changes after the folder was listed or, if `late`, just before the archive is opened."""
    home, _ = saved
    month = (home.kept / ONE).parent
    (home.kept / ONE).unlink()
    (month / "0.jsonl").touch()  # the first one that is listed
    line = LINE.encode()
    forms = {"one.jsonl": line, "one.jsonl.gz": gzip.compress(line)}
    for name in before:
        (month / name).write_bytes(forms[name])
    listed = backup._parts

    def change() -> None:
        (month / after).write_bytes(forms[after])
        for name in {*before} - {after}:
            (month / name).unlink(missing_ok=True)

    def parts(*given: Any) -> Iterator[tuple[Path, str]]:
        for path, name in listed(*given):
            if late and path.name == before[-1]:
                change()
            yield path, name
            if not late and path.name == "0.jsonl":
                change()

    monkeypatch.setattr(backup, "_parts", parts)
    found = back_up(str(home.path), home.root / "c.tar.gz")
    assert f"kept/main-session/2026-11/{after}" in found["sha256"]
    monkeypatch.undo()
    other = home.another("other")
    restore(str(other.path), home.root / "c.tar.gz", replace=False)


@pytest.mark.parametrize("ending", ["backup", "forget"])
def test_what_a_killed_backup_left_is_removed(full: Home, ending: str) -> None:
    left, used = full.path / ".backup-killed00", full.path / ".restore-running0"
    for folder in (left, used):
        folder.mkdir()
        shutil.copy(full.database, folder / "hive.db")
    running = os.open(used, os.O_RDONLY)
    fcntl.flock(running, fcntl.LOCK_EX)
    if ending == "backup":
        back_up(str(full.path), full.root / "c.tar.gz")
    else:
        full.command("forget", SESSION_START["session_id"], "--yes")
    assert not left.exists()
    assert used.exists()
    os.close(running)


def test_a_leftover_that_another_backup_removes_meanwhile_stops_no_backup(
    saved: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = saved
    left = home.path / ".backup-killed00"
    left.mkdir()

    def is_symlink(path: Path) -> bool:
        if path == left:
            left.rmdir()
        return False

    monkeypatch.setattr(Path, "is_symlink", is_symlink)
    assert back_up(str(home.path), home.root / "c.tar.gz")["sha256"]
    assert not left.exists()


def test_what_is_restored_is_still_hivepipes(saved: tuple[Home, Path]) -> None:
    """On a new machine no manifest has these files; on the old one they were written to since."""
    full, _ = saved
    usage = {"skills": {"tidy": {"count": 5, "invocations": [], "sessions": []}}}
    (full.kept / "skill-usage.json").write_text(json.dumps(usage))  # a predecessor's
    with_use(full)
    SkillExports(str(full.path)).write()
    assert count_of(full) == 6
    claim_names(str(full.kept), Manifest(str(full.path)))
    audit_log.record_cleared(str(full.kept), "s", 1)
    Manifest(str(full.path)).set_adopts(adopts=False)  # as the first job about an archive does
    target = full.root / "d.tar.gz"
    back_up(str(full.path), target)
    for _ in range(2):
        with_use(full)
        SkillExports(str(full.path)).write()
    other = full.another("other")
    for home in (full, other):
        restore(str(home.path), target, replace=True)
        with_use(home)
        SkillExports(str(home.path)).write()
        assert count_of(home) == 7
        assert is_own(home.kept / "security-audit.log", Manifest(str(home.path)))
        assert [path.name for path in home.kept.glob("*.before-hivepipe")] == [
            "skill-usage.json.before-hivepipe"
        ]


def with_use(home: Home) -> None:
    sql = """
        INSERT INTO skill_uses (skill, kind, session_id, success, arguments, created_at)
        VALUES ('tidy', 'tool', 's', 1, '', '2026-11-20T23:00:00.000Z')
    """
    with closing(sqlite3.connect(home.database)) as db, db:
        db.execute(sql)


def count_of(home: Home) -> int:
    export = json.loads((home.kept / "skill-usage.json").read_text())
    return int(export["skills"]["tidy"]["count"])


def test_forget_names_what_a_restore_moved_aside(
    full: Home, writer: Writer, redis_server: Server
) -> None:
    writer.end()
    redis_server.end()
    back_up(str(full.path), full.root / "c.tar.gz")
    found = restore(str(full.path), full.root / "c.tar.gz", replace=True)
    said = full.command("forget", SESSION_START["session_id"], "--yes")
    assert f"rm -r {found['before']}" in said
    assert Path(found["before"], "hive.db").exists()


# ---- tail
def test_tail_shows_the_stored_part_of_each_event(full: Home) -> None:
    fire_all([changed(PROMPT, session_id="another", prompt="of another")], full.env)
    until(lambda: full.count("prompts") == 2, "not stored")
    lines = full.command("tail", "--once").splitlines()
    assert any("prompt" in line and PROMPT["prompt"][:20] in line for line in lines)
    assert any("session" in line and "active" in line for line in lines)
    entries = [json.loads(line) for line in full.command("tail", "--once", "--json").splitlines()]
    assert [entry["created_at"] for entry in entries] == sorted(e["created_at"] for e in entries)
    only = full.command("tail", "--once", "--session", "anot")
    assert "of another" in only
    assert PROMPT["prompt"][:20] not in only


def test_tail_continues(full: Home) -> None:
    process = subprocess.Popen(
        [*CLI, "tail", "--lines", "0", "--json"],
        env=full.env,
        cwd=full.project,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        for number in range(50):  # it may not have read the store yet when the first are stored
            fire_all([changed(PROMPT, prompt=f"number {number}")], full.env)
            if _has_line(process):
                break
        seen = json.loads(process.stdout.readline())
        assert seen["what"].startswith("number ")
        assert seen["kind"] == "prompt"
    finally:
        process.terminate()
        process.communicate(timeout=30)


def _has_line(process: "subprocess.Popen[str]") -> bool:
    return bool(select.select([process.stdout], [], [], 1)[0])


def test_no_hook_starts_the_stack_during_a_restore(
    saved: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, target = saved
    home.use_environment(monkeypatch)
    monkeypatch.chdir(home.project)
    monkeypatch.setattr(lifecycle, "TURN_SECS", 0)

    def put_back(its_home: str, *_: object, **__: object) -> None:
        lifecycle.start_for_hook(Stack.prepared(its_home))

    monkeypatch.setattr(commands, "put_back", put_back)
    done = CliRunner().invoke(commands.restore, [str(target), "--replace"], **main.context_settings)
    assert isinstance(done.exception, LockHeldError)


def test_settings_of_a_backup_apply_only_with_with_settings(saved: tuple[Home, Path]) -> None:
    home, target = saved
    other = home.another("other")
    output = other.command("restore", str(target))
    assert not (other.path / "config.toml").exists()
    (beside,) = other.path.glob("backups/settings-of-restore-*/config.toml")
    assert f"settings not restored (--with-settings does): {beside}" in output
    assert beside.read_text() == "idle_secs = 7\n"
    assert "7" not in re.findall(r"idle_secs.*", other.command("config"))[0].split()

    (home.path / "config.toml").write_text("idle_secs = 8\n")
    restore(str(home.path), target, replace=True)
    assert (home.path / "config.toml").read_text() == "idle_secs = 8\n"


@pytest.mark.parametrize("what", ["zeros", "header", "names"])
def test_a_small_file_that_unpacks_to_much_is_refused(
    saved: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    home, _ = saved
    monkeypatch.setattr(backup, "LEAST_ROOM_BYTES", 1 << 20)
    zeros = bytes(4 << 20)
    bomb = home.root / "bomb.tar.gz"
    with tarfile.open(bomb, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        member = tarfile.TarInfo("kept/one")
        if what == "zeros":
            member.size = len(zeros)
            tar.addfile(member, io.BytesIO(zeros))
        elif what == "header":
            member.pax_headers = {"comment": "x" * len(zeros)}
            tar.addfile(member)
        else:
            for number in range(3000):
                tar.addfile(tarfile.TarInfo(f"kept/{number}"))
    before = dump(home)
    with pytest.raises(BackupError, match="--any-size"):
        restore(str(home.path), bomb, replace=True)
    assert dump(home) == before
    assert not list(home.path.glob(".restore-*"))


def test_a_backup_too_large_for_the_disk_is_refused_first(
    saved: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, target = saved
    before = dump(home)
    fill_disk(monkeypatch)
    for any_size in (False, True):
        with pytest.raises(
            BackupError, match="than the 0 MB that may be used: 256 MB of the disk stay free"
        ):
            restore(str(home.path), target, replace=True, any_size=any_size)
    assert dump(home) == before


def test_restored_archives_need_the_room_of_one_copy(
    saved: tuple[Home, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    home, _ = saved
    archive = home.kept / ONE
    os.utime(archive, (1_700_000_000, 1_700_000_000))
    target = home.root / "c.tar.gz"
    back_up(str(home.path), target)

    def copy(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfile", copy)
    restore(str(home.path), target, replace=True)
    assert archive.read_text() == LINE
    assert archive.stat().st_mtime == 1_700_000_000
