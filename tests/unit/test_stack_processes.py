"""Listing the processes of a stack where /proc is missing."""

import sys
from pathlib import Path

import psutil
import pytest

from hivepipe.errors import StackError
from hivepipe.home import locate
from hivepipe.stack.lock import Stack
from hivepipe.stack.stack_processes import stack_processes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reads /proc")
@pytest.mark.parametrize("proc", ["missing", "."])
def test_without_proc_the_reason_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proc: str
) -> None:
    monkeypatch.setattr(psutil, "PROCFS_PATH", str(tmp_path / proc))
    with pytest.raises(StackError, match="mount /proc"):
        stack_processes(Stack.of(locate(str(tmp_path))))
