"""Records and runtime folders that several processes change at the same moment."""

import os
import threading
from pathlib import Path

import pytest

from hivepipe.home import read_record, write_small
from hivepipe.stack import kernel, lifecycle, registration
from hivepipe.stack.lock import Stack, remove_runtime

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


def move_sockets_while(
    person: threading.Thread, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Record another runtime folder; the person's thread begins at the first write."""

    def write_late(path: str, text: str) -> None:
        if threading.current_thread() is not person and not person.ident:
            person.start()
            person.join(LONG_ENOUGH_SECS)
        write_small(path, text)

    monkeypatch.setattr(registration, "write_small", write_late)
    registration.update_sockets(stack._replace(folder=f"{stack.folder}-2"))
    person.join()


def test_what_a_person_switches_off_meanwhile_stays_off(
    tmp_path: Path, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = str(tmp_path / "shop")
    person = threading.Thread(target=registration.switch_off, args=(project,))
    move_sockets_while(person, stack, monkeypatch)
    record = read_record(project)
    assert record["state"] == "off"
    assert record["runtime"] == f"{stack.folder}-2"


def test_a_record_that_is_removed_meanwhile_stays_removed(
    tmp_path: Path, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = str(tmp_path / "shop")
    person = threading.Thread(target=registration.forget, args=(project, stack.home))
    move_sockets_while(person, stack, monkeypatch)
    assert not read_record(project)
    assert not read_record(stack.home)


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
    registration.set_state(stack.home, "down")
    Path(stack.folder).mkdir()
    Path(stack.socket).touch()
    monkeypatch.setattr(kernel, "is_of_another_kernel", lambda _home: is_of_another)
    lifecycle.start_for_hook(stack)
    assert Path(stack.socket).exists() == is_of_another
