"""A long `archive sweep` says on a terminal how far it is."""

import pytest

from hivepipe.cli import archive
from hivepipe.operations.sweep import SweepResult


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_sweep_tells_every_ten_seconds_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    now = [0.0]
    monkeypatch.setattr(archive.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(archive, "is_terminal", lambda *, err: is_terminal)
    progress = archive.Progress()
    for number in range(5):
        now[0] = number * 6.0
        progress(SweepResult(taken=number * 1000, unchanged=number))
    told = [
        "2,000 of 2,002 transcripts archived so far",
        "4,000 of 4,004 transcripts archived so far",
    ]
    assert capsys.readouterr().err.splitlines() == (told if is_terminal else [])
