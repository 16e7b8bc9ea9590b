"""A process that the supervisor forks becomes a worker as if it had been executed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hivepipe.stack.processes import PROCESSES, script_path
from hivepipe.worker import preload

WRITER = str(script_path(next(entry for entry in PROCESSES if entry.name == "writer")))
INTAKE = str(script_path(next(entry for entry in PROCESSES if entry.name == "intake")))
WORDS = [sys.executable, "-I", WRITER]
UNUSED = {"opentelemetry", "typing_extensions", "redis.asyncio", "redis.asyncio.client", "difflib"}
# A parent with a handler and a variable of its own forks a child that runs a script.
PARENT = """
import os, signal, sys
from hivepipe.worker import preload
signal.signal(signal.SIGTERM, lambda *_: None)
os.environ["OF_THE_PARENT"] = "yes"
pid = preload.fork()
if not pid:
    preload.run_script([sys.executable, "-I", sys.argv[1]], {"OF_THE_PROGRAM": "yes"})
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
# The standard error of the child is a pipe that nobody reads.
PARENT_THAT_CLOSED_ITS_PIPE = """
import os, sys
from hivepipe.worker import preload
pid = os.fork()
if not pid:
    read, write = os.pipe()
    os.close(read)
    os.dup2(write, 2)
    try:
        preload.run_script([sys.executable, "-I", sys.argv[1]], {})
    finally:
        os.write(1, b"returned\\n")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
SCRIPT = """
import json, os, signal, sys
print(json.dumps({
    "environ": dict(os.environ),
    "default": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
    "argv": sys.argv,
    "line": open("/proc/self/cmdline").read().split("\\0"),
}))
sys.exit(75)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems execute")
def test_the_script_has_environment_signals_and_command_line_of_its_own(tmp_path: Path) -> None:
    script = tmp_path / "workers" / "writer.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    out = subprocess.check_output([sys.executable, "-I", "-c", PARENT, script], text=True)
    output, code = out.splitlines()
    found = json.loads(output)
    assert found["environ"] == {"OF_THE_PROGRAM": "yes"}
    assert found["default"]
    assert found["argv"] == [str(script)]
    assert [word for word in found["line"] if word] == [sys.executable, "-I", "workers/writer.py"]
    assert code == "75"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems execute")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_child_that_has_not_started_its_program(number: int) -> None:
    """Its parent's code, which deletes the supervisor's socket, does not continue in it."""
    before, begin, after = PARENT.partition("    preload.run_script")
    parent = f"{before}    os.kill(os.getpid(), {number:d})\n{begin}{after}"
    parent = f"import atexit; atexit.register(print, 'cleaned up'){parent}"
    ended = subprocess.check_output([sys.executable, "-I", "-c", parent, "/nowhere"])
    assert ended == b"-%d\ncleaned up\n" % number


@pytest.mark.skipif(sys.platform != "linux", reason="other systems execute")
def test_a_script_without_a_supervisor_for_its_output_ends(tmp_path: Path) -> None:
    """It must not return into the supervisor's code, which deletes the socket of the next one."""
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint('lost', file=sys.stderr)")
    parent = [sys.executable, "-I", "-c", PARENT_THAT_CLOSED_ITS_PIPE, str(script)]
    assert subprocess.check_output(parent, text=True) == "1\n"


@pytest.mark.parametrize(
    ("script", "code"),
    [("", 0), ("raise SystemExit", 0), ("raise SystemExit('no')", 1), ("1 / 0", 1)],
)
def test_the_exit_code_equals_that_of_the_interpreter(
    tmp_path: Path, script: str, code: int
) -> None:
    (tmp_path / "script.py").write_text(script)
    assert preload._exit_code_of(str(tmp_path / "script.py")) == code


def started_by(monkeypatch: pytest.MonkeyPatch, words: list[str], version: str = "") -> list[str]:
    """Return the calls that start a program: `run`, `execve`, or both if the run returns."""
    started: list[str] = []
    runner = preload.Runner(lambda *_: started.append("execve"))
    monkeypatch.setattr(preload, "run_script", lambda *_: started.append("run"))
    if version:
        monkeypatch.setattr(preload, "installed", lambda: version)
    runner.execute(words[0], words, dict(os.environ))
    return started


def test_only_a_script_of_this_version_runs_in_the_forked_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert started_by(monkeypatch, WORDS)[0] == "run"
    assert started_by(monkeypatch, ["/bin/cat", "/tmp/writer.py"]) == ["execve"]
    assert started_by(monkeypatch, [sys.executable, "-I", "-S", INTAKE]) == ["execve"]
    assert started_by(monkeypatch, WORDS, version="2.0") == ["execve"]


def test_the_programs_of_a_damaged_installation_are_executed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Supervisord:
        class options:  # noqa: N801  the name that supervisord gives
            execve = "as before"

    monkeypatch.setattr(preload, "WORKERS", ("no_such_worker",))
    preload.make(Supervisord)
    assert Supervisord.options.execve == "as before"


@pytest.mark.parametrize(
    ("imported", "shown", "expected"),
    [
        (  # Otherwise each worker would compile the rules of every log again, into 4 MB.
            "sys; from hivepipe import redact",
            "redact.built_in.cache_info().currsize, *(UNUSED | {'redis'}) & {*sys.modules}",
            "1 redis\n",
        ),
        # Otherwise supervisord's collections copy 2 MB of the shared memory.
        ("gc", "gc.isenabled(), len(gc.get_objects()) < gc.get_freeze_count()", "True True\n"),
    ],
    ids=["rules are compiled and unused modules absent", "no collection of shared memory"],
)
def test_the_parent_prepares_the_memory_that_workers_share(
    imported: str, shown: str, expected: str
) -> None:
    code = f"import {imported}; from hivepipe.worker import preload; assert preload._imported();"
    code += f"UNUSED = {UNUSED};"
    words = [sys.executable, "-I", "-c", f"{code} print({shown})"]
    assert subprocess.check_output(words, text=True, timeout=60) == expected


@pytest.mark.parametrize(
    "use",
    [
        "import opentelemetry.metrics",
        "import typing_extensions; typing_extensions.TypeAliasType",
        "import redis; redis.asyncio.Redis",
        "import redis.asyncio.client; assert redis.asyncio.Redis is redis.asyncio.client.Redis",
        "from redis.asyncio.sentinel import Sentinel",
        "import redis.asyncio.observability, redis.asyncio.client; redis.asyncio.observability",
    ],
)
def test_what_the_parent_left_out_can_be_used_later(use: str) -> None:
    pytest.importorskip(use.split()[1].rstrip(",;"))
    code = f"from hivepipe.worker import preload; assert preload._imported(); {use}"
    subprocess.run([sys.executable, "-I", "-c", code], check=True, timeout=60)


def test_a_library_may_use_a_name_of_the_deferred_package_while_it_is_imported() -> None:
    code = """
import sys
from hivepipe.worker.preload import _stand_ins
sys.modules.update(_stand_ins())
from redis.asyncio import Redis
import redis.asyncio
assert redis.asyncio is sys.modules["redis.asyncio"] and redis.asyncio.Redis is Redis
"""
    subprocess.run([sys.executable, "-I", "-c", code], check=True, timeout=60)
