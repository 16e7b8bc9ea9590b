"""An edited settings file keeps its owner, its permissions and its attributes."""

import errno
import os
import re
import stat
import struct
from pathlib import Path

import pytest

from hivepipe.errors import SettingsError
from hivepipe.install.edits import Edit, make

_ACL = "system.posix_acl_access"
_NOBODY = 0xFFFFFFFF
OTHER_GROUP = 12345


def access_list(*entries: tuple[int, int, int]) -> bytes:
    """Return an access list in the form of Linux: tag, permissions and id of each entry."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


# The owner and the user 12345 may read and write. Group and others may do nothing.
OF_TWO_USERS = access_list(
    *((1, 6, _NOBODY), (2, 6, 12345), (4, 0, _NOBODY), (16, 6, _NOBODY), (32, 0, _NOBODY))
)


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    path.write_text("{}")
    return path


def edit(path: Path) -> os.stat_result:
    make(Edit(str(path), "{}", '{"a": 1}'))
    assert path.read_text() == '{"a": 1}'
    return path.stat()


def test_an_access_list_stays(settings: Path) -> None:
    """Without the list, its mask would become the permissions of the group."""
    try:
        os.setxattr(settings, _ACL, OF_TWO_USERS)
        os.setxattr(settings, "user.note", b"mine")
    except OSError as error:
        pytest.skip(f"no access lists or attributes on this file system: {error.strerror}")
    edit(settings)
    assert os.getxattr(settings, _ACL) == OF_TWO_USERS
    assert os.getxattr(settings, "user.note") == b"mine"


def test_the_time_of_the_edit_is_visible(settings: Path) -> None:
    os.utime(settings, (1, 1))
    assert edit(settings).st_mtime > 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to any group")
@pytest.mark.parametrize("group", [os.getegid(), OTHER_GROUP])
def test_the_group_stays_in_a_folder_that_sets_another(settings: Path, group: int) -> None:
    os.chown(settings, -1, group)
    os.chmod(settings, 0o640)
    os.chown(settings.parent, -1, 23456)
    os.chmod(settings.parent, 0o2775)
    new = settings.parent / "new"
    new.touch()
    assert new.stat().st_gid == 23456, "the folder gives its group to new files"
    after = edit(settings)
    assert (after.st_gid, stat.S_IMODE(after.st_mode)) == (group, 0o640)


@pytest.mark.parametrize(
    ("group", "ids"), [(os.getegid(), '"$(id -u)"'), (12345, '"$(id -u):$(id -g)"')]
)
def test_a_file_of_another_user_is_named_with_the_command(
    settings: Path, monkeypatch: pytest.MonkeyPatch, group: int, ids: str
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    try:
        os.chown(settings, 12345, group)
    except PermissionError:
        pytest.skip("only root can give files to another user")
    monkeypatch.setattr("os.fchown", refused)
    ids = re.escape(ids)
    text = f"belongs to another user .*sudo chown {ids} {settings}"
    with pytest.raises(SettingsError, match=text):
        edit(settings)
    assert settings.read_text() == "{}"
    assert os.listdir(settings.parent) == [settings.name]
