"""The installed command starts the Python of its environment and no other."""

import os
import shutil
import subprocess
from pathlib import Path

import click.testing
import pytest

from hivepipe.cli import main

LAUNCHER = Path(main.__file__).with_name("launch.sh")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment whose Python was removed by an upgrade of the system."""
    folder = tmp_path / "venv"
    (folder / "bin").mkdir(parents=True)
    shutil.copy(LAUNCHER, folder / "bin" / "hivepipe")
    (folder / "bin" / "python").symlink_to(tmp_path / "gone" / "python3.11")
    (folder / "pyvenv.cfg").touch()
    return folder


def run(command: Path) -> subprocess.CompletedProcess[str]:
    """Run the command where the system's Python is a script that prints "taken"."""
    system = command.parent.parent.parent / "system"
    system.mkdir()
    (system / "python3").write_text("#!/bin/sh\necho taken\n")
    (system / "python3").chmod(0o755)
    env = {"PATH": f"{system}:{os.environ['PATH']}"}
    return subprocess.run([command], capture_output=True, text=True, env=env, check=False)


def test_an_environment_without_its_python_is_reported(environment: Path) -> None:
    done = run(environment / "bin" / "hivepipe")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert f"{environment}/bin/python is missing or cannot be executed" in done.stderr


def test_outside_an_environment_the_systems_python_runs(environment: Path) -> None:
    (environment / "pyvenv.cfg").unlink()
    done = run(environment / "bin" / "hivepipe")
    assert (done.returncode, done.stdout) == (0, "taken\n")


NO_MEMORY = "not enough memory (ulimit -v, or the limit of a container)"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), NO_MEMORY),
        (ImportError("_re2.so: failed to map segment from shared object"), NO_MEMORY),
        (
            ModuleNotFoundError("No module named 'msgspec'", name="msgspec"),
            "msgspec is missing: install hivepipe again, with its requirements.lock",
        ),
        (ModuleNotFoundError("import of x halted; None in sys.modules"), None),
        (ModuleNotFoundError("No module named 'hivepipe.x'", name="hivepipe.x"), None),
        (ImportError("undefined symbol"), None),  # a fault of the package
    ],
)
def test_a_command_that_cannot_be_imported_says_why_in_one_line(
    monkeypatch: pytest.MonkeyPatch, error: Exception, message: str | None
) -> None:
    """Under `ulimit -v`, or after an upgrade without the packages that the new version needs."""

    def refuse(_name: str) -> None:
        raise error

    monkeypatch.setattr(main, "import_module", refuse)
    said = click.testing.CliRunner().invoke(main.main, ["status"])
    assert (said.exit_code, said.stdout) == (1, "")
    line = f"hivepipe: {message}\n" if message else ""
    assert (said.stderr, said.exception is error) == (line, not message)
