"""What `uninstall` counts as hivepipe's own: nothing that a link or a forged list leads to."""

import json
import os
import posix
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from hivepipe import home
from hivepipe.errors import LockHeldError
from hivepipe.home import Place
from hivepipe.install import claude_plugin, edits, installation, removal, users_folder
from hivepipe.install.claude_code import Scope
from hivepipe.install.data import data_of, holds_nothing
from hivepipe.install.hook_entries import EVENTS, Form, entry


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    seen = {b"HOME": bytes(tmp_path / "user"), b"XDG_STATE_HOME": bytes(tmp_path / "state")}
    monkeypatch.setattr(posix, "environ", seen)
    folder = tmp_path.resolve() / "project"
    for name in (".hive-mind", ".claude"):
        (folder / name).mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def register(path: str, its_home: str) -> None:
    file = home.record_path(path)
    home.make_folders(file.rpartition("/")[0])
    home.write_small(file, f"home={its_home}\n")


def owned_paths(project: Path) -> list[str]:
    place = Place(str(project), f"{project}/.hive-mind", {})
    return [entry.path for entry in data_of(place)]


def test_only_our_own_files_of_the_state_folder_are_removed(project: Path, tmp_path: Path) -> None:
    state = project / ".claude-state"
    (state / "logs").mkdir(parents=True)
    for name, text in ((".gitignore", "*\n"), ("session.yaml", "theirs")):
        (state / name).write_text(text)
    ours = [f"{project}/.hive-mind", f"{state}/logs", f"{state}/.gitignore"]
    assert owned_paths(project) == ours
    (state / ".gitignore").write_text("*\n!keep\n")
    assert owned_paths(project) == ours[:2]
    state.rename(tmp_path / "other")
    state.symlink_to(tmp_path / "other")
    assert owned_paths(project) == ours[:1], "nothing behind a link"


def test_settings_that_lead_out_of_the_project_are_left_alone(project: Path) -> None:
    users = Path(home.user_folder(), ".claude", "settings.json")
    users.parent.mkdir(parents=True)
    ours = entry(EVENTS[0], Form.SHARED)
    users.write_text(json.dumps({"hooks": {EVENTS[0].name: [ours]}}))
    (project / ".claude" / "settings.json").symlink_to(users)
    assert removal.plan(user=False).settings == []
    assert [edit.path for edit in removal.plan(user=True).settings] == [str(users)]


def test_settings_that_are_a_link_inside_the_project_are_edited_once(project: Path) -> None:
    settings = project / ".claude" / "settings.json"
    settings.write_text('{"model": "opus"}')
    (project / ".claude" / "settings.local.json").symlink_to(settings.name)
    installation.carry_out(installation.plan(Scope.LOCAL))
    assert "SessionStart" in settings.read_text()
    removal.carry_out(removal.plan(user=False), purge=False)
    assert settings.read_text() == '{"model": "opus"}'


def test_a_folder_of_settings_has_one_path(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = project.parent / "claude" / "settings.json"
    for spelling in (f"{path.parent}/", f"{project}/../claude", "../claude"):
        monkeypatch.setitem(posix.environ, b"CLAUDE_CONFIG_DIR", spelling.encode())
        assert installation.plan(Scope.USER).settings.path == str(path)


def test_only_hives_of_a_list_of_hives_are_removed(project: Path, tmp_path: Path) -> None:
    for folder in ("other", "real/.hive"):
        (tmp_path / folder / "workers").mkdir(parents=True)
    (tmp_path / ".hive").symlink_to(tmp_path / "other")
    listed = [tmp_path / "other", tmp_path / ".hive", tmp_path / "real" / ".hive"]
    (project / ".hive-mind" / "hives").write_text("".join(f"{path}\n" for path in listed))
    assert owned_paths(project) == [f"{project}/.hive-mind", f"{tmp_path}/real/.hive/workers"]


def test_the_default_home_is_shared_once_a_project_is_registered_with_it(project: Path) -> None:
    common = f"{home.state_folder()}/default"
    register(common, common)
    assert not removal.plan(user=True).is_shared
    register(str(project), common)
    assert removal.plan(user=True).is_shared
    assert removal.plan(user=False).is_shared, "with projects that have no record"


def test_settings_are_not_writable_by_others_under_any_umask(project: Path) -> None:
    path = project / "sub" / ".claude" / "settings.json"
    before = os.umask(0)
    try:
        edits.make(edits.Edit(str(path), None, "{}"))
    finally:
        os.umask(before)
    assert [entry.stat().st_mode & 0o777 for entry in (path, path.parent)] == [0o664, 0o775]


def test_a_lost_original_is_not_restored_as_an_empty_file(project: Path) -> None:
    path = project / ".claude" / "settings.json"
    path.write_text("theirs")
    change = edits.Edit(str(path), "theirs", "theirs and ours")
    edits.make_undoable(change, str(project), lambda text: text)
    (kept,) = Path(home.state_folder()).rglob("original")
    kept.unlink()
    assert edits.undone(str(path), lambda text: text.removesuffix(" and ours")).after == "theirs"


@pytest.mark.parametrize("before", [None, '{"model": "opus"}'])
def test_two_inits_at_once_make_one_edit(project: Path, before: str | None) -> None:
    path = project / ".claude" / "settings.local.json"
    if before is not None:
        path.write_text(before)
    plans = [installation.plan(Scope.LOCAL) for _ in range(2)]
    for plan in plans:
        installation.carry_out(plan)
    removal.carry_out(removal.plan(user=False), purge=False)
    assert (path.read_text() if path.exists() else None) == before


def test_edits_of_two_processes_take_turns(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = installation.plan(Scope.LOCAL)
    users_folder.make()
    monkeypatch.setattr(edits, "WAIT_SECS", 0)
    with edits.locked(), pytest.raises(LockHeldError):
        installation.carry_out(plan)
    assert not (project / ".claude" / "settings.local.json").exists()


def test_a_plugin_of_one_project_is_not_the_users(project: Path) -> None:
    (project / ".claude" / "settings.json").write_text('{"enabledPlugins": {"hivepipe@x": true}}')
    copy = project / "copy"
    (copy / "hooks").mkdir(parents=True)
    (copy / "hooks" / "plugin.sh").touch()
    known = Path(home.user_folder(), ".claude", "plugins", "installed_plugins.json")
    known.parent.mkdir(parents=True)
    known.write_text(f'{{"plugins": {{"hivepipe@x": [{{"installPath": "{copy}"}}]}}}}')
    plugin = claude_plugin.switched_on(str(project))
    assert plugin is not None
    assert plugin.is_usable
    assert installation.plan(Scope.LOCAL).plugin == plugin
    assert installation.plan(Scope.USER).plugin is None
    (project / ".claude" / "settings.json").unlink()
    (project / ".claude" / "settings.json").symlink_to("/dev/zero")
    assert claude_plugin.switched_on(str(project)) is None, "a device enables no plugin"


def test_hooks_can_be_removed_where_no_process_is_visible(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise OSError("no /proc")

    monkeypatch.setattr(psutil, "process_iter", fail)
    assert not removal.plan(user=False).runs


def test_a_redis_that_answers_with_an_error_may_hold_data(project: Path) -> None:
    path = f"{project}/redis.sock"
    with socket.socket(socket.AF_UNIX) as server, ThreadPoolExecutor() as threads:
        server.bind(path)
        server.listen()

        def answer() -> None:
            for reply in (b"+PONG\r\n", b"-ERR no\r\n"):
                with server.accept()[0] as connection:
                    while connection.recv(4096):
                        connection.sendall(reply)

        threads.submit(answer)
        assert not holds_nothing(Place(str(project), f"{project}/.hive-mind", {"socket": path}))
