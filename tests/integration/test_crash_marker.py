"""The file that names the job that killed a worker."""

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from hivepipe.worker.crash_marker import CrashMarker
from tests.faults.injections.disks import mounted

RECORD = """
import sys
from hivepipe.worker.crash_marker import CrashMarker
box = CrashMarker(sys.argv[1])
box.record("job")
print(box.read())
"""


def test_the_id_of_an_earlier_process_is_read(tmp_path: Path) -> None:
    path = tmp_path / "writer.job"
    CrashMarker(str(path)).record("0123456789abcdef" * 4)
    assert CrashMarker(str(path)).read() == "0123456789abcdef" * 4


def test_a_full_disk_kills_no_worker(tmp_path: Path) -> None:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        with suppress(OSError), (tmp_path / "disk" / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        command = [sys.executable, "-c", RECORD, str(tmp_path / "disk" / "writer.job")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "job\n")
