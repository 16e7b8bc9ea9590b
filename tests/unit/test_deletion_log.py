"""The log of deletions, written by several processes while it is rotated."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from hivepipe.files import deletion_log, json_log

WRITERS, ENTRIES, ROUNDS = 4, 8, 60
ONE_ROTATION_BYTES = 1_800  # of the 3,000 that all write


def append(home: str, writer: int) -> None:
    """Write this writer's entries."""
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
