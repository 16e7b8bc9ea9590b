"""`hivepipe disk` and `hivepipe export` on a home with archives, an index and a spool."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.archive_scene import SESSION, line
from tests.conftest import Home
from tests.integration.test_cli_listings import command

DAY = 86_400
OLD = "ffffffff-0000-4000-8000-000000000000"


@pytest.fixture
def home(private_home: Home) -> Home:
    command(private_home, "init", "--local", "--no-probe")
    folder = private_home.root / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)
    for session in (SESSION, OLD):
        transcript = line(1, "hello", cwd=str(private_home.project), sessionId=session)
        (folder / f"{session}.jsonl").write_bytes(transcript)
    command(private_home, "archive", "sweep")
    command(private_home, "search", "hello")
    return private_home


def archived_file(home: Home, pattern: str) -> Path:
    (found,) = (home.kept).rglob(pattern)
    return found


def configure(home: Home, section: str) -> None:
    folder = home.root / ".config" / "hivepipe"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(f"[retention]\n{section}\n")


def test_every_store_has_its_size(home: Home) -> None:
    (home.path / "spool").mkdir(exist_ok=True)
    (home.path / "spool" / "00000000000000000001_1.json").write_bytes(b"x" * 1234)
    report = json.loads(command(home, "disk", "--json"))
    assert report["schema"] == 1
    assert report["stores"]["spool"] == 1234
    assert report["stores"]["database"] == home.database.stat().st_size
    assert report["stores"]["archives"] > archived_file(home, f"*{SESSION}.jsonl").stat().st_size
    assert report["stores"]["search"] > 0
    assert report["total"] == sum(report["stores"].values())
    shown = command(home, "disk")
    assert "1 kB" in shown
    assert "archives 365 days" in shown


def test_prune_deletes_expired_data_and_counts_it(home: Home) -> None:
    now = time.time()
    os.utime(archived_file(home, f"*{OLD}.jsonl"), (now - 366 * DAY,) * 2)
    os.utime(home.root / f".claude/projects/-shop/{OLD}.jsonl", (now - 366 * DAY,) * 2)
    os.utime(archived_file(home, f"*{SESSION}.jsonl"), (now - 364 * DAY,) * 2)
    logs = home.path / "logs"
    logs.mkdir(exist_ok=True)
    (logs / "a.log.folder").mkdir()
    os.utime(logs / "a.log.folder", (now - 31 * DAY,) * 2)
    for name, days in (("writer.log.1", 31), ("slow.log.1", 29), ("redis.log", 31)):
        (logs / name).write_text("said\n")
        os.utime(logs / name, (now - days * DAY,) * 2)
    spool = home.path / "spool"
    spool.mkdir(exist_ok=True)
    for days in (15, 13, 1):
        stamp = int((now - days * DAY) * 1e9)
        (spool / f"{stamp:020d}_1.json").write_bytes(b"x" * 600_000)
    configure(home, "spool_mb = 1\nworkers = 999_999  # for ever")

    report = json.loads(command(home, "disk", "--prune", "--json"))
    assert report["dropped"] == {"archives": 1, "logs": 1, "events": 2, "workers": 0}
    assert [path.name for path in logs.glob("*.1")] == ["slow.log.1"]
    (left,) = home.spool
    assert left.name.startswith(f"{int((now - DAY) * 1e9):020d}"[:12])
    assert {"name": "dropped:spool", "value": 2} in home.rows("SELECT * FROM counters")
    listed = json.loads(command(home, "archive", "list", "--json"))["archives"]
    assert [entry["session_id"] for entry in listed] == [SESSION]
    command(home, "archive", "sweep")  # Claude Code still has the transcript
    again = json.loads(command(home, "disk", "--prune", "--json"))
    assert not any(again["dropped"].values())


def test_data_that_cannot_be_deleted_is_reported_in_one_line(private_home: Home) -> None:
    aside = private_home.path / "spool" / "bad" / "1_1.json"
    Path(f"{aside}.reason").mkdir(parents=True)
    aside.write_text("torn")
    os.utime(aside, (0, 0))
    output = command(private_home, "disk", "--prune", expect=1)
    assert output.startswith("hivepipe: some expired data could not be deleted: ")
    assert output.count("\n") == 1


def test_a_bad_section_is_named(private_home: Home) -> None:
    command(private_home, "init", "--local", "--no-probe")
    for section in ("spoon = 3", "spool = 0", "spool = 'long'", "logs = true"):
        configure(private_home, section)
        assert "[retention]" in command(private_home, "disk", "--prune", expect=1), section
        assert "[retention]" in command(private_home, "config", expect=1), section


def test_export_has_every_row_and_archive(home: Home) -> None:
    lines = [json.loads(text) for text in command(home, "export", "--jsonl").splitlines()]
    assert all(entry["schema"] == 1 for entry in lines)
    assert {e["archive"]["session_id"] for e in lines if "archive" in e} == {SESSION, OLD}
    assert all(Path(e["archive"]["path"]).is_file() for e in lines if "archive" in e)
    for table in ("usage", "applied", "schema_migrations"):
        rows = [e["row"] for e in lines if e.get("table") == table]
        assert rows == home.rows(f"SELECT * FROM {table}")
        assert rows
    one = command(home, "export", "--jsonl", "--session", OLD).splitlines()
    assert one
    assert all(OLD in text and SESSION not in text for text in one)
    assert command(home, "export", "--jsonl", "--session", OLD[:6]).splitlines() == one
    assert "no session has the id ee" in command(
        home, "export", "--jsonl", "--session=ee", expect=1
    )
    command(home, "export", expect=64)


def test_a_closed_pipe_or_a_full_disk_gives_no_traceback(home: Home) -> None:
    full = (1, "hivepipe: [Errno 28] No space left on device\n")
    ends = {
        "export --jsonl | head -1 >/dev/null": (0, ""),
        "export --jsonl >/dev/full": full,
        "archive list >/dev/full": full,
    }
    for command_line, end in ends.items():
        done = subprocess.run(
            f"'{sys.executable}' -I -m hivepipe.cli.main {command_line}",
            shell=True,
            cwd=home.project,
            env=home.env,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == end, command_line


def test_a_file_in_the_home_can_only_prolong_retention(home: Home) -> None:
    """A home may be in a repository, and a pulled file must not shorten retention."""
    configure(home, "logs = 50")
    (home.path / "config.toml").write_text("[retention]\narchives = 0.0001\nlogs = 60\n")
    report = json.loads(command(home, "disk", "--prune", "--json"))
    assert report["dropped"]["archives"] == 0
    assert (report["retention"]["archives"], report["retention"]["logs"]) == (365, 60)
