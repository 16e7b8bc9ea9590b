"""The second conversion of a home: its events are on disk before Redis' old file is deleted."""

import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from hivepipe.stack import conversion
from hivepipe.stack.runtime_folder import Stack


def test_the_spool_is_synced_before_the_file_of_redis_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = tmp_path / "shop/.hive-mind", tmp_path / "new"
    for home in (old, new):
        home.mkdir(parents=True)
        (home / "appendonly.aof").write_text(str(home))
    steps: list[str] = []

    def note(owner: object, name: str) -> None:
        monkeypatch.setattr(owner, name, lambda *_: steps.append(name))

    for name in ("spool_jobs", "move_records", "sync", "remove_runtime"):
        note(conversion, name)
    note(conversion.supervisor, "stop")
    note(os, "sync")
    for name in ("server_of_locked", "connect"):
        monkeypatch.setattr(conversion, name, nullcontext)
    conversion._move_out(Stack(str(old), str(tmp_path), ""), str(new))
    steps = [step for step in steps if step in ("spool_jobs", "sync", "move_records")]
    assert steps[:3] == ["spool_jobs", "sync", "move_records"]
