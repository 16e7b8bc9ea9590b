"""The steps of docs/first-change.md work in a copy of the tree, and its tests pass there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "first-change.md").read_text()
COPIED = ("hivepipe", "hooks", "workers", "tests", "docs", "skills", "benchmarks")
STEP = re.compile(
    r"(New file|In) `([^`]+)`(?:, before (`+) ?(.+?) ?\3)?:\n\n```\w+\n(.*?)^```$", re.M | re.S
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
    """Make the changes of a section and return the files that it names."""
    steps = STEP.findall(section)
    for kind, name, _, anchor, block in steps:
        path = tree / name
        if kind == "New file":
            assert not path.exists(), name
            path.write_text(block)
            continue
        lines = path.read_text().splitlines(keepends=True)
        (place,) = [number for number, line in enumerate(lines) if anchor in line]
        between = "\n\n" if block.startswith(("class ", "def ")) else ""
        path.write_text("".join([*lines[:place], block, between, *lines[place:]]))
    return [name for _, name, *_ in steps]


def run(tree: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def section_of(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_the_first_change_works_and_its_tests_pass(tmp_path: Path) -> None:
    command, task = section_of("A command"), section_of("A periodic operation")
    tree = copy_of_the_tree(tmp_path / "tree")
    assert len(follow(command, tree)) == 3
    changed = set(follow(task, tree))
    assert len(changed) == 2
    run(tree, "ruff", "check", "--quiet", "--select", "F821", *changed)
    files = {name for part in (command, task) for name in re.findall(r"tests/\w+/\w+\.py", part)}
    chosen = "models or statistics or row or group or handler or json"
    run(tree, "pytest", "-q", *sorted(files), "-k", chosen, "-p", "no:cacheprovider")
    assert "Count the sessions by model." in run(tree, "hivepipe.cli.main", "models", "--help")


def test_the_files_that_the_page_names_exist() -> None:
    named = set(re.findall(r"(?:hivepipe|tests|docs)/[\w/-]+\.\w+", PAGE))
    missing = {name for name in named if not (ROOT / name).exists()}
    assert missing == set(re.findall(r"New file `([^`]+)`", PAGE))
