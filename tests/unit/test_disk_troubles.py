"""What a worker meets beside its jobs: it says so and goes on, for nobody may start it again."""

import errno
import logging
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from hivepipe.queue.housekeeping import Housekeeper
from hivepipe.queue.spooled import set_aside
from hivepipe.stack import kernel
from hivepipe.worker import claiming_worker
from hivepipe.worker.claiming_worker import ClaimingWorker


def refused(*_: object) -> None:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


def test_a_stack_that_cannot_be_restarted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(claiming_worker, "start_stack", refused)
    monkeypatch.setattr(os.path, "exists", lambda _: True)  # the supervisor's socket
    worker: Any = object.__new__(ClaimingWorker)
    worker._logged_at = {}
    worker._replace_supervisor()
    assert os.strerror(errno.EROFS) in caplog.text


def test_a_spool_that_is_no_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "spool").touch()
    nobody: Any = None
    with caplog.at_level(logging.ERROR):
        assert Housekeeper(nobody, tmp_path, "/nowhere").drain() == 0
    assert os.strerror(errno.ENOTDIR) in caplog.text


def test_what_is_set_aside_is_the_users_alone(tmp_path: Path) -> None:
    """Under any umask: `hivepipe drain` has the shell's."""
    path = tmp_path / "1_1.json"
    path.touch(mode=0o600)
    os.umask(0)
    set_aside(path, "torn")
    modes = {file.name: file.stat().st_mode & 0o777 for file in (tmp_path / "bad").iterdir()}
    assert modes == {"1_1.json": 0o600, "1_1.json.reason": 0o600}
    assert (tmp_path / "bad" / "1_1.json.reason").read_text() == "torn\n"


def test_a_home_that_became_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel.claim(str(tmp_path))
    monkeypatch.setattr(os, "utime", refused)
    assert kernel.touch(str(tmp_path))


@pytest.mark.skipif(not os.path.exists("/proc/self/ns/pid"), reason="the name is all there is")
def test_a_machine_that_changes_its_name_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a laptop may, with its network: its stack neither leaves nor is refused."""
    kernel.claim(str(tmp_path))
    monkeypatch.setattr(socket, "gethostname", lambda: "renamed-by-dhcp")
    assert kernel.touch(str(tmp_path))
    kernel.refuse_another(str(tmp_path))
