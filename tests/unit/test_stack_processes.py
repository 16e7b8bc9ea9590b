"""Listing the processes of stacks: how often they are read, and where /proc is missing."""

import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from hivepipe.errors import StackError
from hivepipe.home import locate
from hivepipe.reading.homes import KnownHome
from hivepipe.stack.lock import Stack
from hivepipe.stack.stack_processes import stack_processes
from hivepipe.web import health_view
from hivepipe.web.health_view import health
from hivepipe.web.queues_view import queues
from hivepipe.web.view_query import Content, ViewQuery


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reads /proc")
@pytest.mark.parametrize("proc", ["missing", "."])
def test_without_proc_the_reason_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proc: str
) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / proc))
    with pytest.raises(StackError, match="mount /proc"):
        stack_processes(Stack.of(locate(str(tmp_path))))


@pytest.mark.parametrize("view", [health, queues])
def test_a_view_of_many_stopped_stacks_reads_the_processes_once(
    view: Callable[[ViewQuery], Content], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    read = psutil.process_iter
    monkeypatch.setattr(psutil, "process_iter", lambda: reads.append(1) or read())
    monkeypatch.setattr(health_view._checks, "get", lambda *_: None)  # doctor reads them too
    homes = [KnownHome(f"k{number}", str(tmp_path / f"{number}"), "") for number in range(3)]
    assert len(view(ViewQuery(homes))["stacks"]) == 3
    assert len(reads) == 1
