"""Folders that are opened without following links: hivepipe.files.folders."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hivepipe.files.folders import Folder

USES: dict[str, Callable[[Folder], object]] = {
    "replaced": lambda folder: folder.replace("taken", b""),
    "opened": lambda folder: folder.open("taken/file"),
}


def test_a_file_system_without_modes_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As fusefat, which answers ENOSYS to `fchmod`."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "fchmod", refuse)
    with Folder(str(tmp_path)) as folder, pytest.raises(OSError, match="file") as raised:
        folder.replace("file", b"")
    assert str(raised.value.filename).startswith(f"{tmp_path}/")


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_an_error_has_the_whole_path(tmp_path: Path, use: Callable[[Folder], object]) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").symlink_to("nowhere")
    with Folder(str(tmp_path)) as folder, pytest.raises(OSError, match="taken") as raised:
        use(folder)
    assert str(raised.value.filename).startswith(f"{tmp_path}/taken")
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".tmp"]
