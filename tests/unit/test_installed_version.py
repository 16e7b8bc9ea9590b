"""The installed version on disk, which every process of a stack asks for again and again."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from hivepipe.stack.installed import installed

ASK = """
import sys
from hivepipe.stack.installed import installed
print(installed(), "importlib.metadata" in sys.modules)
"""


def make(folder: Path, number: str) -> None:
    (folder / f"hivepipe-{number}.dist-info").mkdir(parents=True)
    (folder / f"hivepipe-{number}.dist-info" / "METADATA").touch()


def test_it_is_found_without_the_parsers_of_metadata() -> None:
    """A forked worker that used them would copy 2 MB of the memory that it shares."""
    said = subprocess.check_output([sys.executable, "-I", "-c", ASK], text=True)
    assert said.split() == [version("hivepipe"), "False"]


def test_the_first_folder_of_the_import_path_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make(tmp_path / "second", "8.8.8")
    make(tmp_path / "first", "9.9.9+local.1")
    (tmp_path / "packages.zip").touch()
    names = ("missing", "packages.zip", "first", "second")
    monkeypatch.setattr(sys, "path", [str(tmp_path / name) for name in names])
    assert installed() == "9.9.9+local.1"


def test_a_package_with_a_similar_name_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "hivepipe_extra-2.0.dist-info").mkdir()
    (tmp_path / "hivepipe.egg-link").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installed() == ""


def test_a_folder_of_metadata_that_is_still_empty_has_no_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "hivepipe-9.9.9.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert installed() == ""
