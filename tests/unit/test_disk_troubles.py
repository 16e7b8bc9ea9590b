"""A worker reports faults outside its jobs and goes on, because perhaps nothing restarts it."""

import errno
import logging
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from hivepipe.files.disk_room import free_bytes, has_less, is_full
from hivepipe.queue.housekeeping import Housekeeper
from hivepipe.queue.spooled import set_aside
from hivepipe.stack import kernel
from hivepipe.worker import claiming_worker
from hivepipe.worker.claiming_worker import ClaimingWorker
from tests.postgres import unprivileged


def refused(*_: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_failed_restart_of_the_stack_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(claiming_worker, "start_stack", refused)
    monkeypatch.setattr(os.path, "exists", lambda _: True)  # the supervisor's socket
    worker: Any = object.__new__(ClaimingWorker)
    worker._logged_at = {}
    worker._parent, worker._is_supervised = 0, False
    worker._check_supervisor()
    assert os.strerror(errno.EROFS) in caplog.text


def test_a_spool_that_is_no_folder_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "spool").touch()
    nobody: Any = None
    with caplog.at_level(logging.ERROR):
        assert Housekeeper(nobody, tmp_path, "/nowhere").drain() == 0
    assert os.strerror(errno.ENOTDIR) in caplog.text


def test_only_the_user_can_read_a_file_that_is_set_aside(tmp_path: Path) -> None:
    """The umask does not matter: `hivepipe drain` has that of the shell."""
    path = tmp_path / "1_1.json"
    path.touch(mode=0o600)
    os.umask(0)
    set_aside(path, "torn")
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "bad").iterdir()}
    assert modes == {"1_1.json": 0o600, "1_1.json.reason": 0o600}
    assert (tmp_path / "bad" / "1_1.json.reason").read_text() == "torn\n"


def test_a_claim_on_a_read_only_home_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel.claim(str(tmp_path))
    monkeypatch.setattr(os, "utime", refused)
    assert kernel.touch(str(tmp_path))


@pytest.mark.skipif(
    not os.path.exists("/proc/self/ns/pid"),
    reason="without /proc the host name identifies the machine",
)
def test_a_renamed_machine_keeps_its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop's name may change with its network. Its stack keeps running and may be started."""
    kernel.claim(str(tmp_path))
    monkeypatch.setattr(socket, "gethostname", lambda: "renamed-by-dhcp")
    assert kernel.touch(str(tmp_path))
    kernel.refuse_another(str(tmp_path))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_folder_that_another_user_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o700)
    os.seteuid(unprivileged().pw_uid)
    try:
        with pytest.raises(PermissionError):
            os.listdir(tmp_path / "theirs")
        assert not is_full(tmp_path / "theirs" / "runtime")
    finally:
        os.seteuid(0)


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="no /proc of Linux")
def test_a_file_system_that_reports_no_size_is_not_full() -> None:
    """As /proc and some file systems of FUSE."""
    assert os.statvfs("/proc").f_blocks == 0
    assert free_bytes("/proc") is None
    assert not has_less("/proc", 1)
    assert not is_full("/proc")
    assert has_less("/", 1e18)
