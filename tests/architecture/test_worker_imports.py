"""What a worker keeps in memory for its whole life: no library that it does not use."""

import subprocess
import sys

import pytest

OF_OTHERS = {"click", "pydantic", "pydantic_ai", "rich", "supervisor", "watchfiles", "xmlrpc"}
WORKERS = {
    "writer": "import hivepipe.worker.writer; from hivepipe.operations.slow import load_writes; "
    "load_writes()",
    "slow": "import hivepipe.worker.slow_worker; from hivepipe.operations.slow import load_slow; "
    "load_slow('slow')",
    "scheduler": "import hivepipe.worker.scheduler",
}


@pytest.mark.parametrize("worker", WORKERS)
def test_a_worker_loads_no_library_of_commands_or_supervisor(worker: str) -> None:
    code = f"{WORKERS[worker]}; import sys; print(*sys.modules)"
    command = [sys.executable, "-I", "-c", code]
    loaded = subprocess.check_output(command, text=True, timeout=60).split()
    assert {name.partition(".")[0] for name in loaded} & OF_OTHERS == set()
