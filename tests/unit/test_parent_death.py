"""What becomes Redis ends with its supervisor, and with nobody else."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes
from hivepipe.stack.lock import Stack
from hivepipe.stack.parent_death import end_with_supervisor
end_with_supervisor(Stack("/home", "/folder"))
number = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(number), 0, 0, 0)
print(number.value)
"""
WORDS = [sys.executable, "-I", "-c", PROGRAM]
BELOW = {"SUPERVISOR_SERVER_URL": "unix:///folder/supervisor.sock"}
# A parent with the supervisor's command line, which waits.
PARENT = "import subprocess, sys; subprocess.run(sys.argv[3:])"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has such a signal")


@pytest.mark.parametrize("url", ["", "unix:///another/supervisor.sock"])
def test_below_another_parent_it_gets_no_signal_of_a_death(url: str) -> None:
    """A thread of a Procfile's manager may end long before the manager does."""
    env = {"SUPERVISOR_SERVER_URL": url}
    said = subprocess.run(WORDS, env=env, capture_output=True, text=True, check=True).stdout
    assert said == "0\n"


def test_below_its_supervisor_it_gets_sigterm() -> None:
    parent = [sys.executable, "-c", PARENT, "-c", "/folder/supervisord.conf"]
    done = subprocess.run([*parent, *WORDS], env=BELOW, capture_output=True, text=True, check=True)
    assert done.stdout == "15\n"


def test_one_whose_supervisor_is_gone_already_does_not_start() -> None:
    done = subprocess.run(WORDS, env=BELOW, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "StackError: the supervisor was killed" in done.stderr
