"""Records and runtime folders that several processes change at the same moment."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from hivepipe.errors import LockHeldError
from hivepipe.files.folders import Folder
from hivepipe.files.manifest import Manifest
from hivepipe.home import default_home, read_record, record_path
from hivepipe.install.users_folder import removed_if_refused
from hivepipe.stack import kernel, lifecycle, registration
from hivepipe.stack.runtime_folder import Stack, remove_runtime

LONG_ENOUGH_SECS = 0.3  # for the other one, if nothing holds it up


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    """Return the stack of the registered project `shop`."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name))
    stack = Stack(str(tmp_path / "home"), str(tmp_path / "run"))
    registration.register(str(tmp_path / "shop"), stack, "/usr/bin/python3")
    return stack


def change_while(
    person: threading.Thread, change: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Change records; the person's thread begins at the first write."""
    replace = Folder.replace

    def replace_late(folder: Folder, name: str, data: bytes) -> None:
        if threading.current_thread() is not person and not person.ident:
            person.start()
            person.join(LONG_ENOUGH_SECS)
        replace(folder, name, data)

    monkeypatch.setattr(Folder, "replace", replace_late)
    change()
    person.join()


@pytest.mark.parametrize("removes", [False, True])
def test_what_a_person_switches_off_or_removes_meanwhile_stays_so(
    tmp_path: Path, stack: Stack, monkeypatch: pytest.MonkeyPatch, removes: bool
) -> None:
    project = str(tmp_path / "shop")
    moved = stack._replace(folder=f"{stack.folder}-2")

    def change() -> None:
        if removes:
            registration.forget(project, stack.home)
        else:
            registration.switch_off(project)

    def switch() -> None:
        home, address, folder = moved.home, moved.address, moved.folder
        registration.change_records({home}, socket=address, runtime=folder)

    person = threading.Thread(target=change)
    change_while(person, switch, monkeypatch)
    if removes:
        assert not read_record(project)
        assert not read_record(stack.home)
    else:
        record = read_record(project)
        assert (record["state"], record["runtime"]) == ("off", moved.folder)


@pytest.mark.parametrize("is_move", [True, False])
def test_a_stack_that_is_stopped_while_its_data_is_moved_stays_stopped(
    tmp_path: Path, stack: Stack, monkeypatch: pytest.MonkeyPatch, is_move: bool
) -> None:
    project = str(tmp_path / "shop")
    old = stack._replace(home=f"{project}/.hive-mind")
    home = str(tmp_path / "new") if is_move else stack.home

    def stop() -> None:
        registration.change_records({home}, state="down")

    person = threading.Thread(target=stop)

    def change() -> None:
        if is_move:
            registration.move_records(old.home, stack._replace(home=home), project)
        else:
            registration.change_records({home}, tree=project)

    if is_move:
        registration.register(project, old, "/usr/bin/python3", adopt=True)
    change_while(person, change, monkeypatch)
    for folder in (home, project):
        assert read_record(folder)["state"] == "down", folder


def test_a_converted_project_that_is_off_can_be_switched_on(stack: Stack, tmp_path: Path) -> None:
    names = (str(tmp_path / f"shop{number}") for number in range(100))
    project = next(name for name in names if record_path(name) < record_path(f"{name}/.hive-mind"))
    old = stack._replace(home=f"{project}/.hive-mind")
    registration.register(project, old, "/usr/bin/python3", "off", adopt=True)
    registration.move_records(old.home, stack._replace(home=str(tmp_path / "new")), project)
    assert read_record(project)["state"] == "off"
    registration.switch_on(project)
    assert read_record(project)["state"] == "on"


def test_a_project_that_shares_the_default_home_keeps_its_record(
    stack: Stack, tmp_path: Path
) -> None:
    """Every project without a record uses the default home, until init for the user is undone."""
    project = str(tmp_path / "shop")
    registration.register(stack.home, stack, "/usr/bin/python3")
    registration.forget(stack.home, stack.home)
    assert read_record(project)["home"] == stack.home
    assert read_record(stack.home)["socket"] == stack.address
    registration.forget(project, stack.home)
    assert not read_record(project)
    assert not read_record(stack.home)
    shared = stack._replace(home=default_home())
    registration.register(shared.home, shared, "/usr/bin/python3")
    registration.register(project, shared, "/usr/bin/python3")
    registration.forget(project, shared.home)
    assert not read_record(project)
    assert read_record(shared.home)["home"] == shared.home
    registration.forget(shared.home, shared.home)
    assert not read_record(shared.home)


def test_a_killed_removal_of_records_can_be_repeated(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of the project leads to that of the home, so it is removed last."""
    project = str(tmp_path / "shop")
    removed: list[str] = []
    unlink = os.unlink
    monkeypatch.setattr(os, "unlink", lambda path: (removed.append(str(path)), unlink(path)))
    registration.forget(project, stack.home)
    assert removed == [record_path(stack.home), record_path(project)]


def test_a_record_is_synced_before_it_replaces_another(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        sync(descriptor)
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    monkeypatch.setattr(os, "fsync", noted)
    registration.change_records({stack.home}, state="down")
    assert f".{Path(record_path(stack.home)).name}.tmp" in synced


def test_a_file_that_a_hook_removes_meanwhile_leaves_no_folder_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run" / "hash"
    folder.mkdir(parents=True)
    for name in ("calls-listed", "redis.lock", "starting"):
        (folder / name).touch()
    listed = list(os.scandir(folder))
    monkeypatch.setattr(os, "scandir", lambda _folder: iter(listed))
    Path(listed[0].path).unlink()
    remove_runtime(Stack(str(tmp_path), str(folder)))
    assert not folder.parent.exists()


@pytest.mark.parametrize("is_of_another", [True, False])
def test_a_late_start_removes_no_files_of_another_kernels_stack(
    stack: Stack, monkeypatch: pytest.MonkeyPatch, is_of_another: bool
) -> None:
    registration.change_records({stack.home}, state="down")
    Path(stack.folder).mkdir()
    Path(stack.socket).touch()
    monkeypatch.setattr(kernel, "is_of_another_kernel", lambda _home: is_of_another)
    lifecycle.start_for_hook(stack)
    assert Path(stack.socket).exists() == is_of_another


def test_an_init_that_fails_removes_nothing_of_another_one(stack: Stack, tmp_path: Path) -> None:
    new = stack._replace(home=str(tmp_path / "new"))

    def wait_in_vain() -> None:
        with removed_if_refused(new):
            registration.register(str(tmp_path / "new shop"), new, "/usr/bin/python3")  # another's
            raise LockHeldError("another process of hivepipe has locked the records")

    with pytest.raises(LockHeldError):
        wait_in_vain()
    assert read_record(new.home)
    assert Manifest(new.home).fact("installed_at")


@pytest.mark.parametrize("is_given", [False, True])
def test_a_failed_registration_removes_only_what_it_made(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_given: bool
) -> None:
    home = tmp_path / "new"
    if is_given:
        home.mkdir(mode=0o700)

    def fail(*_: object) -> None:
        Manifest(str(home)).begin()
        raise OSError("the disk is full")

    monkeypatch.setattr(registration, "_take_names", fail)
    new = stack._replace(home=str(home))
    with pytest.raises(OSError, match="full"), removed_if_refused(new):
        registration.register(str(tmp_path / "new shop"), new, "/usr/bin/python3")
    assert os.path.isdir(home) == is_given
    assert not is_given or not os.listdir(home)
    assert not read_record(str(home))
