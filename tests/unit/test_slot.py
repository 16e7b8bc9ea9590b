"""The file in which the intake keeps an event that it has accepted."""

from pathlib import Path

from hivepipe.hook.slot import Slot
from tests.archive_scene import full_disk


def test_after_a_full_disk_the_file_holds_only_the_next_event(tmp_path: Path) -> None:
    slot = Slot(str(tmp_path))
    with full_disk(8):
        assert not slot.keep(1, b"longer than that")
    assert not list(tmp_path.glob("spool/*"))
    assert slot.keep(2, b"short")
    (kept,) = tmp_path.glob("spool/*.raw")
    assert kept.read_bytes() == b"short"
