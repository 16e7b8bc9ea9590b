"""What unit tests share."""

from pathlib import Path

import pytest

from tests.archive_scene import Scene


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A user with Claude's folder and an archive; nothing waits for a disk."""
    monkeypatch.setattr("hivepipe.archive.sources.user_folder", lambda: str(tmp_path))
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)
    return Scene(tmp_path)
