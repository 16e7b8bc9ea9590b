"""supervisord stops one group of programs after the other without pauses between them."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil  # type: ignore[import-untyped]
import pytest

from tests.conftest import PATIENCE_SECS, until

GROUPS = 8  # without our module each takes up to a second
SUPERVISORD = """\
[supervisord]
nodaemon=true
logfile=%(here)s/log
pidfile=%(here)s/pid
[unix_http_server]
file=%(here)s/sock
[rpcinterface:prompt_reactions]
supervisor.rpcinterface_factory=hivepipe.stack.prompt_reactions:make
"""
# The programs close their output, because its end would wake supervisord, too.
PROGRAM = """\
[program:{number}]
command=sh -c 'exec sleep 60 >&- 2>&-'
priority={number}
startsecs=0
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with TemporaryDirectory(prefix="hp-", dir="/tmp") as name:
        yield Path(name)


def test_the_end_of_each_program_ends_the_wait_of_supervisord(folder: Path) -> None:
    config = folder / "supervisord.conf"
    config.write_text(SUPERVISORD + "".join(PROGRAM.format(number=n) for n in range(GROUPS)))
    command = [sys.executable, "-I", "-m", "supervisor.supervisord", "-c", str(config)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        programs = psutil.Process(running.pid).children
        until(lambda: [each.name() for each in programs()] == ["sleep"] * GROUPS, "not started")
        began = time.monotonic()
        running.terminate()
        assert running.wait(PATIENCE_SECS) == 0
        assert time.monotonic() - began < GROUPS - 2
