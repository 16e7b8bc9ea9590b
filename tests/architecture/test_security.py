"""Each promise in docs/security.md has a row with existing tests."""

import re

import pytest

from tests.architecture.test_coverage import functions_of
from tests.architecture.test_docs import ROOT, cells

PAGE = (ROOT / "docs" / "security.md").read_text()
TABLES = re.findall(r"^## .+(?=\n\n\| promise)", PAGE, re.MULTILINE)
ROWS = [row for heading in TABLES for row in cells(PAGE, heading)]


def test_the_page_has_its_tables() -> None:
    assert len(TABLES) >= 3
    assert len(ROWS) >= 30


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].split("**")[1])
def test_each_promise_has_an_explanation_and_existing_tests(row: list[str]) -> None:
    promise, shown = row
    assert re.fullmatch(r"\*\*.+?\.\*\* \S.*", promise)
    named = re.findall(r"`([a-z_]+/test_\w+)::(\w+)`", shown)
    assert named, "a row without a test shows nothing"
    for file, name in named:
        assert name in functions_of(file), f"{file}::{name}"
