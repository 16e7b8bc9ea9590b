"""Which file system holds a home, and whether two machines may share it."""

import pytest

from hivepipe.db.location import file_system_of, is_shared

MOUNTS = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 21 0:40 / /home/ana/shared\\040disk rw - virtiofs host rw
41 21 0:41 / /mnt rw shared:5 master:2 - nfs4 server:/x rw
42 41 0:42 / /mnt/local rw - xfs /dev/sdb1 rw
43 21 0:43 / /work rw - fuse.grpcfuse grpcfuse rw
44 21 0:44 / /disk rw - fuseblk /dev/sdc1 rw
45 21 0:45 / /media/münchen rw - cifs //server/münchen rw
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
    ],
)
def test_the_longest_mount_point_decides(path: str, kind: str, shared: bool) -> None:
    assert file_system_of(path, MOUNTS) == kind
    assert is_shared(kind) is shared
    assert (file_system_of(path, ""), is_shared("")) == ("", False), "without a table"
