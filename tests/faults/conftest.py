"""Fixtures of the fault tests."""

from collections.abc import Iterator

import pytest

from tests.conftest import Home, Server

pytest.register_assert_rewrite("tests.faults.harness")

from tests.faults.harness import Bench  # noqa: E402  rewritten first


@pytest.fixture
def bench(private_home: Home, redis_server: Server) -> Iterator[Bench]:
    """A private home with a running Redis; writers are started by the test."""
    made = Bench(private_home, redis_server)
    yield made
    made.close()
