"""The owner of a file, if it is another user."""

import os
from pathlib import Path

import pytest

from hivepipe.files.owner import another_owner

UNKNOWN = 61234  # a uid without a name

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def test_the_other_user_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.json"
    file.touch()
    os.chown(file, UNKNOWN, -1)
    assert another_owner(str(file)) == ""  # root may change it
    monkeypatch.setattr(os, "geteuid", lambda: UNKNOWN + 1)
    assert another_owner(str(file)) == f"#{UNKNOWN}"


def test_a_file_system_that_shows_one_owner_has_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "settings.json"
    file.touch()
    monkeypatch.setattr(os, "geteuid", lambda: UNKNOWN)  # new files belong to root, too
    assert another_owner(str(file)) == ""
