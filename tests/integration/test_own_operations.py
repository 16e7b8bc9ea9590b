"""Operations of installed packages, with pip and a running stack, as in docs/operations.md."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from hivepipe.programs import running
from hivepipe.stack.stack_processes import value_or
from tests.conftest import CLI, ROOT, until
from tests.installed import Installation, User, give
from tests.sandbox import Sandbox

PAGE = (ROOT / "docs" / "operations.md").read_text()
PROJECT, MODULE = re.findall(r"```(?:toml|python)\n(.*?)```", PAGE, re.DOTALL)

LEFT = f"sleep 600.{os.getpid()}"  # a background process
# name -> the function's body, and the reason in `hivepipe failed` (None: the job does not fail)
FAULTS = {
    "raises": ("raise RuntimeError('password=hunter2hunter2')", "RuntimeError: password="),
    "exits": ("os._exit(3)", "exit code 3"),
    "leaves": ("sys.exit(4)", "SystemExit: 4"),
    "crashes": ("os.kill(os.getpid(), 11)", "signal 11"),
    "hangs": (f"os.system('setsid {LEFT} &'); time.sleep(600)", "did not end within 1 s"),
    "talks": ("print('x' * 10**7)", None),
    "comes_back": ("first(event)", None),
}
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")  # events of the session
HEAD = """
import os, sys, time
from pathlib import Path
from hivepipe import operation

def first(event):
    mark = Path(event["project"], "..", event["id"])
    if not mark.exists():
        mark.touch()
        raise RuntimeError("not yet")
    Path(event["project"], "..", "came-back").touch()
"""


def package(folder: Path, name: str, project: str, module: str) -> Path:
    folder.mkdir()
    (folder / "pyproject.toml").write_text(project)
    (folder / f"{name}.py").write_text(module)
    return folder


def faulty_package(folder: Path) -> Path:
    """Write a package with functions that fail in every way, and one that works."""
    functions = [
        f"@operation(on=['SessionEnd'], retries={int(name == 'comes_back')}, timeout_secs=1)\n"
        f"def {name}(event):\n    {body}\n"
        for name, (body, _) in FAULTS.items()
    ]
    points = [f'{name} = "faulty:{name}"' for name in [*FAULTS, "plain"]]
    points += ['missing = "no_such_module:f"']
    entry = '[project.entry-points."hivepipe.operations"]'
    text = PROJECT.replace("session-notes", "faulty").split("[project.entry-points")[0]
    module = "\n".join([HEAD, *functions, "def plain(event): ..."])
    return package(folder, "faulty", "\n".join([text, entry, *points, ""]), module)


def install(installation: Installation, source: Path) -> None:
    """Install a package with pip into the environment of an installation, without a network."""
    (site,) = (installation.folder / ".venv").glob("lib/python3*/site-packages")
    words = ("install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir")
    command = [sys.executable, "-m", "pip", *words, "--target", str(site), str(source)]
    subprocess.run(command, check=True, timeout=120)
    give(site)


@pytest.fixture(scope="module")
def with_packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation with both packages."""
    folder = Path(tempfile.mkdtemp(prefix="hp-", dir="/tmp")).resolve()
    folder.chmod(0o755)
    made = Installation(folder)
    sources = tmp_path_factory.mktemp("packages")
    install(made, package(sources / "notes", "session_notes", PROJECT, MODULE))
    install(made, faulty_package(sources / "faulty"))
    yield made
    made.end()
    shutil.rmtree(folder)


@pytest.fixture
def user(folder: Path, with_packages: Installation) -> Iterator[User]:
    made = User(folder, with_packages)
    made.hivepipe("init")
    yield made
    made.end_all()


def left_processes() -> list[psutil.Process]:
    """Return the background process that a function started, if it runs."""
    found = psutil.process_iter()
    return [each for each in found if value_or(each.cmdline, []) == LEFT.split()]


def failed(user: User) -> dict[str, str]:
    jobs = json.loads(user.hivepipe("failed", "list", "--json"))["failed"]
    return {str(job["reason"]).split(": ")[1]: str(job["reason"]) for job in jobs}


def test_the_example_runs_and_faults_only_fail_their_jobs(user: User) -> None:
    user.hivepipe("up", "-d")
    user.play_session()
    notes = user.project.parent / "session-notes.txt"
    until(notes.exists, "the operation of the page did not run", 60)
    assert notes.read_text().split()[1:] == ["s1", "other"]
    dead = {name for name, (_, reason) in FAULTS.items() if reason} | {"plain", "missing"}
    until(lambda: failed(user).keys() >= dead, "not all faults are failed jobs", 120)
    until((user.project.parent / "came-back").exists, "no retry", 60)
    reasons = failed(user)
    assert reasons.keys() == dead
    for name, (_, reason) in FAULTS.items():
        assert not reason or reason in reasons[name]
    assert "hunter2" not in str(reasons)
    assert not left_processes()
    assert "@hivepipe.operation" in reasons["plain"]
    assert "no_such_module" in reasons["missing"]
    (session,) = user.sessions()
    assert (session["id"], session["condition"]) == ("s1", "ended")


def test_doctor_names_each_operation(user: User) -> None:
    report = json.loads(user.do("hivepipe", "doctor", "--json").stdout)
    found = [each["text"] for each in report["findings"] if each["check"] == "operations"]
    assert "session_notes of an installed package runs on SessionEnd" in found
    assert sum("cannot be loaded" in text for text in found) == 2


def test_drain_runs_operations_without_a_stack(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.play_session()
    done = user.do("hivepipe", "drain")
    assert done.returncode == 0
    assert done.stderr.count("an installed operation failed: run_custom: ") == 6 + 2 * len(EVENTS)
    assert (user.project.parent / "session-notes.txt").read_text().split()[1:] == ["s1", "other"]
    assert "0 events applied" in user.hivepipe("drain")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_a_stack_that_an_operation_starts_outlives_the_operation(sandbox: Sandbox) -> None:
    """The operation may run `claude` in another project, whose hook starts the stack there."""
    up = f"[*{CLI!r}, 'up', '-d'], cwd={str(sandbox.project)!r}, env={sandbox.env!r}, check=True"
    code = (
        "import os, subprocess, time\n"
        "from hivepipe.operations import custom_child as child\n"
        "def run(*_):\n"
        f"    subprocess.run({up})\n"
        f"    os.system('setsid {LEFT} &')\n"
        "    time.sleep(600)\n"
        "child._run = run\n"
        "child.main()"
    )
    with running([sys.executable, "-I", "-c", code], b'{"name": "", "event": null}'):
        until(left_processes, "the operation did not start its processes")
        pids = sandbox.pids()
    assert not left_processes()
    assert sandbox.pids() == pids
