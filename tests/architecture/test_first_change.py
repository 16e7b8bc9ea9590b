"""docs/first-change.md is followed in a copy of the tree, and its tests pass there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "first-change.md").read_text()
COPIED = ("hivepipe", "hooks", "workers", "tests", "docs", "skills")
STEP = re.compile(
    r"^(New file|In) `([^`]+)`(?:, before (`+) ?(.+?) ?\3)?:\n\n```\w+\n(.*?)^```$", re.M | re.S
)


def copy_of_the_tree(folder: Path) -> Path:
    """Copy the packages, pages and top-level files."""
    folder.mkdir()
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy2(path, folder)
    return folder


def follow(section: str, tree: Path) -> list[str]:
    """Make the changes of a section; return the files that it names."""
    steps = STEP.findall(section)
    for kind, name, _, anchor, block in steps:
        path = tree / name
        if kind == "New file":
            assert not path.exists(), name
            path.write_text(block)
            continue
        lines = path.read_text().splitlines(keepends=True)
        (place,) = [number for number, line in enumerate(lines) if anchor in line]
        path.write_text("".join([*lines[:place], block, *lines[place:]]))
    return [name for _, name, *_ in steps]


def run(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def test_the_command_of_the_page_works_and_its_tests_pass(tmp_path: Path) -> None:
    section = PAGE.split("\n## A command\n")[1].split("\n## ")[0]
    tree = copy_of_the_tree(tmp_path / "tree")
    assert len(follow(section, tree)) == 4
    (line,) = re.findall(r"-m (pytest -q .*)", section)
    result = run(
        tree,
        *line.split(),
        "-k",
        "models or row or group or command_explains",
        "-p",
        "no:cacheprovider",
    )
    assert result.returncode == 0, result.stdout
    assert (
        "Count the sessions by model." in run(tree, "hivepipe.cli.main", "models", "--help").stdout
    )
