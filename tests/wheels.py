"""Wheels of the project, each built once by pip for all processes of xdist."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import ROOT

PARTS = (
    *("hivepipe", "hooks", "workers", "native", "skills", ".claude-plugin"),
    *("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "requirements.lock"),
    ".gitignore",
)
INSTALL_SECS = 600
PROGRAM = "hivepipe/_native/hook"


class Wheels:
    """A clone of the project, and wheels of it."""

    def __init__(self, factory: pytest.TempPathFactory) -> None:
        """Copy the files that an installation needs."""
        self.clone = copy_of_the_clone(factory.mktemp("clone"))
        base = factory.getbasetemp()
        self._shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def built(self, **env: str) -> Path:
        """Return a wheel as a user builds it; `env` names variables without HIVEPIPE_."""
        folder = self._shared / "-".join(["wheel", *env.values()])
        given = {f"HIVEPIPE_{name}": value for name, value in env.items()}
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not list(folder.glob("*.whl")):
                pip(sys.executable, "wheel", "-w", str(folder), str(self.clone), **given)
        (found,) = folder.glob("*.whl")
        return found


def copy_of_the_clone(folder: Path) -> Path:
    """Copy the files of a clone that an installation needs to a folder."""
    for name in PARTS:
        if (ROOT / name).is_dir():
            plain = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=plain)
        else:
            shutil.copy2(ROOT / name, folder)
    return folder


def pip(python: str | Path, *words: str, **env: str) -> None:
    offline = ("--no-deps", "--no-index", "--no-cache-dir", "--disable-pip-version-check")
    isolation = () if words[-1].endswith(".whl") else ("--no-build-isolation",)
    command = [str(python), "-m", "pip", "-q", words[0], *offline, *isolation, *words[1:]]
    subprocess.run(command, env={**os.environ, **env}, check=True, timeout=INSTALL_SECS)


def program_in(wheel: Path) -> bytes:
    """Return the native hook of a wheel, which must be executable, or b"" if it has none."""
    with ZipFile(wheel) as file:
        if PROGRAM not in file.namelist():
            return b""
        assert file.getinfo(PROGRAM).external_attr >> 16 & 0o777 == 0o755
        return file.read(PROGRAM)
