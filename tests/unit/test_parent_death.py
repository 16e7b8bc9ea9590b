"""A process that becomes Redis ends with its supervisor, not with another parent."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.parent_death import end_with_supervisor
end_with_supervisor(Stack("/home", "/folder"))
number = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(number), 0, 0, 0)
print(number.value)
"""
COMMAND = [sys.executable, "-I", "-c", PROGRAM]
ENVIRONMENT = {"SUPERVISOR_SERVER_URL": "unix:///folder/supervisor.sock"}
# A parent with the supervisor's command line, which waits.
PARENT = "import subprocess, sys; subprocess.run(sys.argv[3:])"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has such a signal")


@pytest.mark.parametrize("url", ["", "unix:///another/supervisor.sock"])
def test_the_death_of_another_parent_sends_no_signal(url: str) -> None:
    """The thread of a Procfile manager that started it may end before the manager does."""
    env = {"SUPERVISOR_SERVER_URL": url}
    output = subprocess.run(COMMAND, env=env, capture_output=True, text=True, check=True).stdout
    assert output == "0\n"


def test_the_death_of_the_supervisor_sends_sigterm() -> None:
    parent = [sys.executable, "-c", PARENT, "-c", "/folder/supervisord.conf"]
    done = subprocess.run(
        [*parent, *COMMAND], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "15\n"


def test_a_process_whose_supervisor_is_gone_does_not_start() -> None:
    done = subprocess.run(COMMAND, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "StackError: the supervisor was killed" in done.stderr
