"""The log of deletions, written by several processes while it is rotated."""

import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from hivepipe.files import deletion_log, json_log
from hivepipe.files.log_lines import append_whole, open_locked
from tests.archive_scene import full_disk

WRITERS, ENTRIES, ROUNDS = 4, 8, 60
ONE_ROTATION_BYTES = 1_800  # of the 3,000 that all write


def append(home: str, writer: int) -> None:
    json_log.LARGEST_BYTES = ONE_ROTATION_BYTES
    for number in range(ENTRIES):
        deletion_log.record(home, "archive", f"{writer}-{number}", 1.0, "test")


def test_a_rotation_by_several_processes_loses_no_entry(tmp_path: Path) -> None:
    written = {f"{writer}-{number}" for writer in range(WRITERS) for number in range(ENTRIES)}
    with ProcessPoolExecutor(WRITERS) as pool:
        for home in (str(tmp_path / str(each)) for each in range(ROUNDS)):
            list(pool.map(append, [home] * WRITERS, range(WRITERS)))
            assert Path(home, "logs", "deletions.log.1").exists()
            assert {entry.path for entry in deletion_log.deletions(home)} == written


def test_an_entry_that_a_full_disk_cuts_off_spoils_no_other(tmp_path: Path) -> None:
    home = str(tmp_path)
    deletion_log.record(home, "archive", "one", 1.0, "test")
    size = Path(home, "logs", "deletions.log").stat().st_size
    with full_disk(size + 20), pytest.raises(OSError, match="No space left"):
        deletion_log.record(home, "archive", "two", 1.0, "test")
    deletion_log.record(home, "archive", "three", 1.0, "test")
    assert [entry.path for entry in deletion_log.deletions(home)] == ["one", "three"]


def test_a_link_or_pipe_in_place_of_a_log_is_not_followed_and_blocks_nobody(tmp_path: Path) -> None:
    target, link, pipe = (tmp_path / name for name in ("target", "link", "pipe"))
    target.write_text("of the user")
    link.symlink_to(target)
    with pytest.raises(OSError, match="symbolic links"):
        open_locked(str(link))
    os.mkfifo(pipe)
    descriptor = open_locked(str(pipe))
    with pytest.raises(OSError, match=r"Invalid argument|unavailable"):
        append_whole(descriptor, bytes(1 << 20))
    os.close(descriptor)
