"""security-audit.log: whole lines from many processes, one file a day, kept 90 days, mode 0600."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hivepipe.files.logs import is_own
from hivepipe.files.manifest import Manifest
from hivepipe.redact import audit_log
from tests.archive_scene import full_disk

LINE = re.compile(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\] (.+)")


def lines(folder: Path, name: str = audit_log.NAME) -> list[str]:
    """Return the messages of a file; each line must begin with its time."""
    found = [LINE.fullmatch(line) for line in (folder / name).read_text().splitlines()]
    assert all(found)
    return [line[1] for line in found if line]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "logs"


def test_each_entry_has_its_text_and_is_known_as_hivepipes(folder: Path, tmp_path: Path) -> None:
    """Only a log of such lines is pruned and cleared of forgotten sessions."""
    archived = tmp_path / "a.jsonl"
    archived.touch(0o600)
    archived.chmod(0o600)
    manifest = Manifest(str(tmp_path))
    manifest.claim(audit_log.NAME)
    audit_log.record_redaction(str(folder), "s1", {"API key": 3})
    audit_log.record_redaction(
        str(folder), "s2", {"password": 1, "e-mail address": 2, "private key": 0}
    )
    audit_log.record_redaction(str(folder), "s3", {})
    audit_log.record_archive(str(folder), archived)
    audit_log.record_cleared(str(folder), "s1", 2)
    assert lines(folder) == [
        "Redacted 3 API keys from session s1",
        "Redacted 2 e-mail addresses, 1 password from session s2",
        "No sensitive data in session s3",
        "Created archive with permissions 0600: a.jsonl",
        "Cleared 2 earlier lines of session s1 of what was found later",
    ]
    assert is_own(folder / audit_log.NAME, manifest)
    audit_log.append(str(folder), "planted")
    assert not is_own(folder / audit_log.NAME, manifest)


def test_a_name_cannot_forge_a_line(folder: Path) -> None:
    audit_log.record_redaction(str(folder), "s1\n[2026-01-01T00:00:00Z] forged", {})
    assert len(lines(folder)) == 1


def test_a_line_that_a_full_disk_cuts_off_is_not_written(folder: Path) -> None:
    audit_log.record_redaction(str(folder), "s1", {})
    size = (folder / audit_log.NAME).stat().st_size
    with full_disk(size + 20), pytest.raises(OSError, match="No space left"):
        audit_log.record_redaction(str(folder), "s2", {})
    audit_log.record_redaction(str(folder), "s3", {})
    assert lines(folder) == [f"No sensitive data in session {each}" for each in ("s1", "s3")]


def test_a_long_line_is_truncated(folder: Path) -> None:
    audit_log.append(str(folder), "x" * 10_000)
    assert (folder / audit_log.NAME).stat().st_size == audit_log.LIMIT_BYTES


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_only_the_owner_can_read_it_under_any_umask(folder: Path, umask: int) -> None:
    folder.mkdir()
    old = os.umask(umask)
    try:
        audit_log.append(str(folder), "one")
        audit_log.append(str(folder), "two")
    finally:
        os.umask(old)
    assert (folder / audit_log.NAME).stat().st_mode & 0o7777 == 0o600
    assert lines(folder) == ["one", "two"]


def set_day(monkeypatch: pytest.MonkeyPatch, day: str) -> None:
    monkeypatch.setattr(audit_log, "_stamp", lambda _secs: f"{day}T12:00:00Z")


def test_every_day_has_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in ("2026-08-22", "2026-08-23", "2026-11-20", "2026-11-21"):
        set_day(monkeypatch, day)
        audit_log.append(str(folder), day)
    assert sorted(path.name for path in folder.iterdir()) == [
        "security-audit.log",
        "security-audit.log.2026-08-22",
        "security-audit.log.2026-08-23",
        "security-audit.log.2026-11-20",
    ]
    assert lines(folder) == ["2026-11-21"]
    assert lines(folder, "security-audit.log.2026-11-20") == ["2026-11-20"]


def test_a_log_is_rotated_without_a_new_entry(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audit_log.rotate(str(folder))
    assert not folder.exists()
    set_day(monkeypatch, "2026-11-20")
    audit_log.append(str(folder), "old")
    set_day(monkeypatch, "2026-11-21")
    audit_log.rotate(str(folder))
    assert lines(folder, "security-audit.log.2026-11-20") == ["old"]
    assert lines(folder) == []


def test_a_link_in_its_place_is_refused(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (folder / audit_log.NAME).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        audit_log.append(str(folder), "one")
    assert not (tmp_path / "elsewhere").exists()


def test_a_link_that_came_with_the_project_is_not_written_through(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("mine\n")
    folder.mkdir()
    (folder / audit_log.NAME).write_text("[2026-11-20T12:00:00Z] planted\n")
    (folder / f"{audit_log.NAME}.2026-11-20").symlink_to(theirs)
    set_day(monkeypatch, "2026-11-21")
    audit_log.append(str(folder), "one")
    assert theirs.read_text() == "mine\n"
    assert lines(folder) == ["one"]


def test_an_invalid_date_in_the_first_line_names_no_file_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / f"{audit_log.NAME}.").mkdir(parents=True)
    (folder / audit_log.NAME).write_text("[/../../out] planted\n")
    set_day(monkeypatch, "2026-11-21")
    audit_log.append(str(folder), "one")
    assert sorted(path.name for path in folder.parent.iterdir()) == ["logs"]
    assert (folder / audit_log.NAME).read_text().endswith("Z] one\n")


WRITER = """
import sys
from hivepipe.files.logs import is_own
from hivepipe.files.manifest import Manifest
from hivepipe.redact import audit_log
from tests.archive_scene import full_disk
days = ["2026-11-19", "2026-11-20", "2026-11-21"]
for number in range(300):
    day = days[number // 100]
    audit_log._stamp = lambda _secs: f"{day}T12:00:00Z"
    audit_log.append(sys.argv[1], f"{sys.argv[2]} {number}")
"""


def test_processes_that_write_and_rotate_at_once_lose_nothing(folder: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(folder), str(n)]) for n in range(4)
    ]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0, 0, 0]
    found = [line for path in folder.iterdir() for line in lines(folder, path.name)]
    assert sorted(found) == sorted(f"{n} {number}" for n in range(4) for number in range(300))
