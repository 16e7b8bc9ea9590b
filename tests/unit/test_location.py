"""Which file system holds a home, and whether two machines may share it."""

from pathlib import Path

import pytest

from hivepipe.db import location
from hivepipe.db.location import file_system_of, is_shared
from hivepipe.doctor.disk import modes
from hivepipe.doctor.facts import Facts
from hivepipe.home import Place
from hivepipe.stack.runtime_folder import Stack

MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 21 0:40 / /home/ana/shared\\040disk rw - virtiofs host rw
41 21 0:41 / /mnt rw shared:5 master:2 - nfs4 server:/x rw
42 41 0:42 / /mnt/local rw - xfs /dev/sdb1 rw
43 21 0:43 / /work rw - fuse.grpcfuse grpcfuse rw
44 21 0:44 / /disk rw - fuseblk /dev/sdc1 rw
45 21 0:45 / /media/münchen rw - cifs //server/münchen rw
46 21 0:46 / /media/my\u00a0disk rw - fuse.sshfs host rw
47 21 0:47 / /media/a\u2028b rw - nfs4 host rw
torn line
"""


@pytest.mark.parametrize(
    ("path", "kind", "shared"),
    [
        ("/home/ana/shop/.hive-mind", "ext4", False),
        ("/home/ana/shared disk/shop", "virtiofs", True),
        ("/home/ana/shared", "ext4", False),
        ("/mnt", "nfs4", True),
        ("/mnt/local/shop", "xfs", False),
        ("/mntlocal", "ext4", False),
        ("/work/shop", "fuse.grpcfuse", True),
        ("/disk/shop", "fuseblk", False),
        ("/media/münchen/shop", "cifs", True),
        ("/media/my\u00a0disk/shop", "fuse.sshfs", True),
        ("/media/a\u2028b/shop", "nfs4", True),
    ],
)
def test_the_longest_mount_point_decides(path: str, kind: str, shared: bool) -> None:
    assert file_system_of(path, MOUNTS) == kind
    assert is_shared(kind) is shared
    assert (file_system_of(path, ""), is_shared("")) == ("", False), "without a table"


def test_a_carriage_return_in_a_mount_point_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The kernel does not escape it either."""
    mounts = tmp_path / "mountinfo"
    mounts.write_bytes(b"46 21 0:46 / /media/a\rb rw - nfs4 host rw\n")
    monkeypatch.setattr(location, "_MOUNTS", mounts)
    assert location.is_on_shared_file_system("/media/a\rb/shop")


@pytest.mark.parametrize("kind", ["vfat", "ext4"])
def test_doctor_asks_for_no_chmod_where_it_has_no_effect(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 8:1 / / rw - {kind} /dev/sda1 rw\n")
    monkeypatch.setattr(location, "_MOUNTS", mounts)
    tmp_path.chmod(0o755)
    home = str(tmp_path)
    found = [*modes(Facts(Place(home, home, {}), Stack(home, home)))]
    assert {kind in each.text for each in found} == {kind == "vfat"}
    assert {each.mend.startswith("chmod -R go-rwx ") for each in found} == {kind == "ext4"}
