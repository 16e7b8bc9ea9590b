"""supervisord continues while the disk accepts neither its logs nor its stderr."""

import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil  # type: ignore[import-untyped]

from tests.conftest import until

SUPERVISORD = """\
[supervisord]
nodaemon=true
silent=true
logfile=%(here)s/log
pidfile=%(here)s/pid
[unix_http_server]
file=%(here)s/sock
[rpcinterface:stderr_on_full_disk]
supervisor.rpcinterface_factory=hivepipe.stack.stderr_on_full_disk:make
[program:talker]
command=sh -c 'while sleep 0.1; do echo a line; done'
stdout_logfile=%(here)s/talker
"""


def test_supervisord_survives_logs_that_cannot_be_written() -> None:
    with TemporaryDirectory(prefix="hp-", dir="/tmp") as name:
        config, stderr, log = (Path(name, each) for each in ("conf", "stderr", "talker"))
        config.write_text(SUPERVISORD)
        command = [sys.executable, "-I", "-m", "supervisor.supervisord", "-c", str(config)]
        with stderr.open("wb") as errors, subprocess.Popen(command, stderr=errors) as running:
            try:
                until(lambda: log.exists() and log.stat().st_size > 0, "nothing was logged")
                limit = psutil.Process(running.pid).rlimit
                limit(psutil.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # as on a full disk
                before = log.stat().st_size
                time.sleep(1)
                assert log.stat().st_size == before
                assert running.poll() is None
                limit(psutil.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                until(lambda: log.stat().st_size > before, "nothing is logged again")
            finally:
                running.terminate()
