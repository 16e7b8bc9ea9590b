"""Workers and the web page load no library that they do not use."""

import subprocess
import sys

import pytest

OF_OTHERS = {
    *("click", "psutil", "pydantic", "pydantic_ai", "rich", "supervisor", "watchfiles", "xmlrpc")
}
WORKERS = {
    "writer": "import hivepipe.worker.writer",
    "slow": "import hivepipe.worker.slow_worker; from hivepipe.operations.declared import load; "
    "load('slow')",
    "scheduler": "import hivepipe.worker.scheduler",
}


@pytest.mark.parametrize("worker", WORKERS)
def test_a_worker_loads_no_library_of_commands_or_supervisor(worker: str) -> None:
    assert loaded(WORKERS[worker]) & OF_OTHERS == set()


def test_the_page_loads_the_library_of_redis_with_the_first_view_that_asks_it() -> None:
    pytest.importorskip("starlette")
    assert loaded("import hivepipe.web.app") & {"redis", "rq", "supervisor"} == set()
    assert "redis" in loaded("import hivepipe.web.queues_view")


def loaded(code: str) -> set[str]:
    """Return the top-level packages that a new interpreter has after this code."""
    command = [sys.executable, "-I", "-c", f"{code}; import sys; print(*sys.modules)"]
    names = subprocess.check_output(command, text=True, timeout=60).split()
    return {name.partition(".")[0] for name in names}
