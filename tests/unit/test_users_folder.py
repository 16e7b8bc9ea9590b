"""The user's state folder while several commands change it at once."""

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from hivepipe.errors import SettingsError
from hivepipe.home import state_folder
from hivepipe.install import edits, installation, users_folder
from hivepipe.install.claude_code import Scope
from hivepipe.stack import hook_copy

LONG_ENOUGH_SECS = 1  # for `init`, if nothing holds it up


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, folder in (("HOME", "user"), ("XDG_STATE_HOME", "state"), ("XDG_DATA_HOME", "data")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    project = tmp_path / "shop"
    project.mkdir()
    monkeypatch.chdir(project)
    return project


def test_the_last_uninstall_removes_no_hooks_that_an_init_writes_meanwhile(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users_folder.make()
    hook_copy.write()
    init = threading.Thread(target=installation.carry_out, args=(installation.plan(Scope.LOCAL),))
    remove = shutil.rmtree

    def remove_late(folder: Any, **options: Any) -> None:
        if str(folder).endswith("/hooks"):
            init.start()
            init.join(LONG_ENOUGH_SECS)
        remove(folder, **options)

    monkeypatch.setattr(shutil, "rmtree", remove_late)
    users_folder.tidy()
    init.join()
    assert hook_copy.launcher() in (project / ".claude/settings.local.json").read_text()
    assert os.access(hook_copy.launcher(), os.X_OK)


def test_a_lock_that_is_held_too_long_fails_no_command(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users_folder.make()
    monkeypatch.setattr(edits, "WAIT_SECS", 0.0)
    with edits.locked():
        users_folder.tidy()
    assert Path(state_folder()).is_dir()
    users_folder.tidy()
    assert not Path(state_folder()).exists()


def test_a_state_folder_that_settings_cannot_name_is_refused(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/st\xe4te"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    with pytest.raises(SettingsError, match="is not UTF-8"):
        installation.carry_out(installation.plan(Scope.LOCAL))
    assert not folder.exists()
    assert not list(project.iterdir())
