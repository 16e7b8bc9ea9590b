"""Count what every scenario compares, whoever wrote it: see `tally`."""

import os
from collections.abc import Iterator

import pytest

from tests.real import tally

FILE = os.environ.get("TEST_TALLY", "")


@pytest.hookimpl
def pytest_runtest_logstart() -> None:
    """Begin to count anew."""
    tally.begin()


@pytest.hookimpl
def pytest_assertion_pass() -> None:
    """Count an assertion that held; `run` switches this on."""
    tally.current.comparisons += 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Keep what became of a test, and behind its end what was counted."""
    report = yield
    if report.failed or call.when == "call":
        is_expected = hasattr(report, "wasxfail")
        item.stash[OUTCOME] = "expected" if is_expected else report.outcome
    if call.when == "teardown" and FILE:
        with open(FILE, "a") as file:
            file.write(tally.current.as_line(item.nodeid, item.stash.get(OUTCOME, "skipped")))
    return report


OUTCOME = pytest.StashKey[str]()
