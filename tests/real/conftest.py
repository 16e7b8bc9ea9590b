"""Count clients, payloads and assertions of each test; `tally` defines the counts."""

import os
from collections.abc import Iterator

import pytest

from tests.real import tally

FILE = os.environ.get("TEST_TALLY", "")


@pytest.hookimpl
def pytest_runtest_logstart() -> None:
    tally.begin()


@pytest.hookimpl
def pytest_assertion_pass() -> None:
    """Count an assertion that held; `run` enables this hook."""
    tally.current.comparisons += 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Store the outcome of a test; write its line to TEST_TALLY after its teardown."""
    report = yield
    if report.failed or call.when == "call":
        is_expected = hasattr(report, "wasxfail")
        item.stash[OUTCOME] = "expected" if is_expected else report.outcome
    if call.when == "teardown" and FILE:
        with open(FILE, "a") as file:
            file.write(tally.current.as_line(item.nodeid, item.stash.get(OUTCOME, "skipped")))
    return report


OUTCOME = pytest.StashKey[str]()
