"""tests/coverage.md has a row for every system, and the tests and modules in it exist."""

import functools
import re

import pytest

from tests.architecture.test_docs import ROOT, cells

PAGE = (ROOT / "tests" / "coverage.md").read_text()
SYSTEMS = cells(PAGE, "## Systems")


@functools.cache
def functions_of(file: str) -> frozenset[str]:
    path = ROOT / "tests" / f"{file}.py"
    return frozenset(re.findall(r"^def (\w+)\(", path.read_text(), re.MULTILINE))


def test_every_system_has_a_row() -> None:
    assert [row[0].split()[0] for row in SYSTEMS] == [*map(str, range(1, 33)), *"abcdefghijkl"]


@pytest.mark.parametrize("row", SYSTEMS, ids=lambda row: row[0])
def test_the_tests_of_a_row_exist(row: list[str]) -> None:
    named = re.findall(r"`([a-z_]+/test_\w+)::(\w+)`", row[2])
    assert named, "a row without a test shows nothing"
    for file, name in named:
        assert name in functions_of(file), f"{file}::{name}"


def test_the_tests_named_in_thinned_md_exist() -> None:
    page = (ROOT / "tests" / "thinned.md").read_text()
    for file, name in re.findall(r"`([a-z_]+/test_\w+)::(\w+)`", page):
        assert name in functions_of(file), f"{file}::{name}"


@pytest.mark.parametrize("row", SYSTEMS, ids=lambda row: row[0])
def test_the_modules_of_a_row_exist(row: list[str]) -> None:
    for name in re.findall(r"`([a-z_/]+(?:/|\.py))`", row[1]):
        assert any((ROOT / top / name).exists() for top in ("hivepipe", ".")), name
