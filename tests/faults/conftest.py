"""Fixtures of the fault tests."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.conftest import Home, Server, short_folder
from tests.faults.harness import Bench
from tests.faults.injections.damage import table


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a table of the faults that were injected in all processes of xdist."""
    rows: dict[tuple[str, str], int] = {}
    damage: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, said in getattr(report, "user_properties", ()):
                if name == "faults" and report.when == "call":
                    fault, hits, found = said
                    rows |= {(fault, step): many for step, many in hits.items()}
                    damage.update(found)
    if rows or any(damage.values()):
        terminalreporter.section("faults")
        terminalreporter.write_line(table(rows, damage))


tmp_path = pytest.fixture(short_folder, name="tmp_path")  # no test waits for a sync


@pytest.fixture
def bench(private_home: Home, redis_server: Server) -> Iterator[Bench]:
    """A private home with a running Redis; the test starts the writers."""
    made = Bench(private_home, redis_server)
    yield made
    made.close()
