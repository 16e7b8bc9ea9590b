"""Raw events of the native hook are counted and deleted like other spooled events."""

import errno
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hivepipe import direct
from hivepipe.config.retention import Limits
from hivepipe.db.database import Database
from hivepipe.hook import convert_spool, waiting_notice
from hivepipe.hook.throttle import REMEMBERED_EVENTS
from hivepipe.monitor.snapshot import vitals
from hivepipe.operations.prune_files import _events_over
from hivepipe.queue import raw_spool, spool
from hivepipe.queue.all_jobs import oldest_job_time
from hivepipe.queue.housekeeping import Housekeeper
from hivepipe.queue.spooled import has_spooled
from hivepipe.stack.home_files import why_not_ours
from hivepipe.worker import idle_shutdown
from tests import payloads
from tests.conftest import PATIENCE_SECS, ROOT
from tests.native import BUILT, HookHome
from tests.payloads import SESSION, changed, encoded

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="no native hook for this machine")

OTHER = "ffffffff-0000-4000-8000-000000000000"


@pytest.fixture
def raw(hook_home: HookHome) -> Path:
    hook_home.fire(hook_home.native, "Stop", encoded(payloads.STOP))
    (path,) = hook_home.raw()
    return path


def aged(path: Path, secs: float) -> Path:
    """Rename an event's file and set its time, as if it were that much older."""
    then = time.time() - secs
    older = path.with_name(f"{int(then * 1e9):020d}_1.raw")
    path.rename(older)
    os.utime(older, (then, then))
    return older


def test_status_and_alerts_count_a_raw_event(hook_home: HookHome, raw: Path) -> None:
    aged(raw, 7200)
    report = json.loads(hook_home.home.command("status", "--json", expect=None))
    assert (report["spool"], report["in_memory"]) == (1, 0)
    found = vitals(str(hook_home.home.path), None, None)
    assert found.spooled == 1
    assert found.oldest_spooled_secs >= 7200


def test_drain_check_and_notice_count_a_raw_event(hook_home: HookHome, raw: Path) -> None:
    assert has_spooled(str(hook_home.home.path))
    aged(raw, 7200)
    assert "1 event waits on disk" in waiting_notice.notice(
        str(hook_home.home.path), str(hook_home.runtime)
    )


def test_a_stack_with_a_raw_event_is_not_idle(
    hook_home: HookHome, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Idle(Housekeeper):
        def __init__(self) -> None: ...

        def accepted(self) -> int:
            return 0

        def nothing_waits(self) -> bool:
            return True

    monkeypatch.setattr(idle_shutdown, "LOOK_EVERY_SECS", 0.0)
    watch = idle_shutdown.IdleWatch(str(hook_home.home.path), Idle())
    db = Database(hook_home.home.path / "other.db")
    try:
        watch.idle_secs(db)
        time.sleep(0.05)
        assert watch.idle_secs(db) == 0
        raw.unlink()
        time.sleep(0.05)
        assert watch.idle_secs(db) >= 0.05
    finally:
        db.close()


def test_records_as_old_as_a_raw_event_are_kept(hook_home: HookHome, raw: Path) -> None:
    with hook_home.redis().client() as client:
        raw.rename(raw.with_name("01760000000000000000_1.raw"))
        assert oldest_job_time(client, raw.parent) == "2025-10-09T08:53:20.000000Z"


def test_only_an_expired_raw_event_is_deleted(hook_home: HookHome, raw: Path) -> None:
    home = str(hook_home.home.path)
    assert list(_events_over(home, time.time(), Limits())) == []
    old = aged(raw, 15 * 86_400)
    assert [found.path for found in _events_over(home, time.time(), Limits())] == [str(old)]


def test_raw_events_and_their_reasons_count_as_files_of_hivepipe(tmp_path: Path) -> None:
    for name in ("1_1.raw", "1_1.raw.tmp", "bad/1_1.raw.reason", "bad/1_1.raw.tmp.reason"):
        path = tmp_path / "spool" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        assert why_not_ours(str(tmp_path), f"spool/{name}") == ""


def test_a_drain_converts_more_than_one_batch(
    hook_home: HookHome, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_spool, "_AT_ONCE", 1)
    for _ in range(2):
        hook_home.fire(hook_home.native, "Stop", encoded(payloads.STOP))
    raw_spool.convert_all(str(hook_home.home.path))
    assert hook_home.raw() == []


def test_a_raw_event_that_cannot_be_converted_delays_no_other_and_is_not_tried_in_each_turn(
    hook_home: HookHome, raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_spool, "_AT_ONCE", 1)
    raw.write_bytes(b"HPv2" + raw.read_bytes()[4:])
    hook_home.fire(hook_home.native, "Stop", encoded(payloads.STOP))
    with hook_home.redis().client() as client:
        keeper = Housekeeper(client, hook_home.home.path, hook_home.home.address)
        while keeper.drain() or len(hook_home.raw()) > 1:
            pass
        assert hook_home.raw() == [raw]
        monkeypatch.setattr(raw_spool.subprocess, "run", pytest.fail)
        keeper.drain()


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, ""), OSError(errno.EMFILE, ""), MemoryError()]
)
def test_an_error_of_the_disk_or_the_process_sets_no_raw_event_aside(
    hook_home: HookHome, raw: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(convert_spool, "_take_in", fail)
    convert_spool._convert(raw)
    assert hook_home.raw() == [raw]


def test_drain_reports_raw_events_that_it_cannot_convert(hook_home: HookHome, raw: Path) -> None:
    torn = raw.with_name("00000000000000000001_1.raw")
    torn.write_bytes(raw.read_bytes()[:-1])
    raw.write_bytes(b"HPv2" + raw.read_bytes()[4:])
    report = direct.drain(str(hook_home.home.path))
    assert list(report.failed) == [raw]
    assert "torn" in report.set_aside[torn]


# As flock(2) says of NFS: an exclusive lock is for those who may write, a shared one for readers.
LOCKS_OF_NFS = """
import errno, fcntl, os, sys
local = fcntl.flock
def flock(file, how):
    refused = {fcntl.LOCK_EX: os.O_RDONLY, fcntl.LOCK_SH: os.O_WRONLY}.get(how & ~fcntl.LOCK_NB)
    if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == refused:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    local(file, how)
fcntl.flock = flock
"""
CONVERT = "from hivepipe.hook import convert_spool; convert_spool.main()"


def convert(hook_home: HookHome, *paths: Path, before: str = "") -> None:
    code = f"{before}\nimport sys; sys.path.insert(0, {str(ROOT)!r}); {CONVERT}"
    command = [sys.executable, "-I", "-c", code, *map(str, paths)]
    subprocess.run(command, env=hook_home.env, check=True, timeout=PATIENCE_SECS)


def test_raw_events_in_a_home_on_nfs_are_converted(hook_home: HookHome, raw: Path) -> None:
    convert(hook_home, raw, before=LOCKS_OF_NFS)
    assert hook_home.raw() == []
    assert len(hook_home.home.spool) == 1


def test_a_raw_event_that_cannot_be_set_aside_delays_no_other(
    hook_home: HookHome, raw: Path
) -> None:
    torn = raw.with_name("00000000000000000001_1.raw")
    torn.write_bytes(raw.read_bytes()[:-1])
    (raw.parent / "bad").touch()
    convert(hook_home, torn, raw)
    assert hook_home.raw() == [torn]
    assert len(hook_home.home.spool) == 1


@pytest.mark.parametrize("words", [[SESSION], ["--matching", "quetzalcoatl"]])
def test_forget_deletes_raw_events_of_the_session(hook_home: HookHome, words: list[str]) -> None:
    for session, text in ((SESSION, "quetzalcoatl"), (OTHER, f"not {SESSION}")):
        event = changed(payloads.STOP, session_id=session, last_assistant_message=text)
        hook_home.fire(hook_home.native, "Stop", encoded(event))
    assert len(hook_home.raw()) == 2
    hook_home.home.command("forget", *words, "--dry-run")
    assert len(hook_home.raw()) == 2
    hook_home.home.command("forget", *words, "--yes")
    (left,) = hook_home.raw()
    assert OTHER.encode() in left.read_bytes()
    hook_home.home.command("drain")
    rows = hook_home.home.rows("SELECT id FROM sessions")
    assert [row["id"] for row in rows] == [OTHER]


def test_a_raw_event_is_converted_in_any_locale(
    hook_home: HookHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = "de_DE.ISO-8859-1"
    locale = ["localedef", "-i", "de_DE", "-f", "ISO-8859-1", str(tmp_path / name)]
    if not shutil.which("localedef") or subprocess.run(locale, capture_output=True).returncode:
        pytest.skip("no localedef or no sources of locales")
    monkeypatch.setenv("LOCPATH", str(tmp_path))
    monkeypatch.setenv("LC_ALL", name)
    home = tmp_path / "größe"
    home.mkdir(mode=0o700)
    hook_home.register(home=str(home))
    hook_home.fire(hook_home.native, "Stop", encoded(payloads.STOP))
    assert list((home / "spool").glob("*.raw"))
    raw_spool.convert_all(str(home))
    assert [path.suffix for path in (home / "spool").iterdir()] == [".json"]


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "time.sleep(60)"])
def test_an_event_that_kills_the_converter_does_not_hold_up_the_next_ones(
    hook_home: HookHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, end: str
) -> None:
    fire_operations(hook_home, 1, 2, 3, 4)
    killer = hook_home.raw()[1]
    script = tmp_path / "convert.py"
    script.write_text(
        "import os, sys, time\n"
        "for path in sys.argv[1:]:\n"
        f"    {end} if path == {str(killer)!r} else os.unlink(path)\n"
    )
    monkeypatch.setattr(raw_spool, "_SECS", 2)
    monkeypatch.setattr(raw_spool, "module", lambda _, *paths: [sys.executable, script, *paths])
    raw_spool.convert_all(str(hook_home.home.path))
    assert hook_home.raw() == [killer]


def fire_operations(hook_home: HookHome, *numbers: int) -> None:
    for number in numbers:
        edit = changed(payloads.POST_EDIT, tool_use_id=f"toolu_{number:06d}")
        hook_home.fire(hook_home.native, "PostToolUse", encoded(edit))


def counted(hook_home: HookHome) -> int:
    """Apply the whole spool and return the number of operations in the store."""
    hook_home.home.command("drain")
    (row,) = hook_home.home.rows("SELECT operation_count FROM instance_sessions")
    return int(row["operation_count"])


@pytest.mark.parametrize("last", [payloads.STOP, payloads.SESSION_END], ids=["Stop", "SessionEnd"])
def test_operations_converted_after_the_turn_ended_are_counted(
    hook_home: HookHome, last: dict[str, Any]
) -> None:
    """An intake that just started takes the last event while the operations are still raw."""
    hook_home.fire(hook_home.native, "SessionStart", encoded(payloads.SESSION_START))
    fire_operations(hook_home, 1, 2, 3)
    assert len(hook_home.raw()) == 3
    hook_home.intake()
    hook_home.fire(hook_home.native, last["hook_event_name"], encoded(last))
    assert counted(hook_home) == 3


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, ""), MemoryError()])
def test_operations_whose_conversion_failed_are_counted_once(
    hook_home: HookHome, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    hook_home.fire(hook_home.native, "SessionStart", encoded(payloads.SESSION_START))
    raw_spool.convert_all(str(hook_home.home.path))
    fire_operations(hook_home, *range(REMEMBERED_EVENTS + 2))
    monkeypatch.setattr(spool, "keep_event", fail)
    for _ in range(3):
        full = multiprocessing.get_context("fork").Process(target=convert_here, args=(hook_home,))
        full.start()
        full.join(PATIENCE_SECS)
    assert len(hook_home.raw()) == REMEMBERED_EVENTS + 2
    hook_home.fire(hook_home.native, "Stop", encoded(payloads.STOP))
    assert counted(hook_home) == REMEMBERED_EVENTS + 2


def convert_here(hook_home: HookHome) -> None:
    for path in hook_home.raw():
        convert_spool._convert(path)
