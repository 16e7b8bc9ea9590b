"""The last line of `hivepipe status`: a stack that rests is not one that is unwell."""

from typing import Any

import pytest

from hivepipe.cli.status import verdict
from hivepipe.home import Place

NONE: dict[str, Any] = {"healthy": False, "redis": "down", "processes": [], "failed_start": None}
KNOWN = {"python": "/usr/bin/python", "state": "on"}


@pytest.mark.parametrize(
    ("report", "record", "said"),
    [
        ({"healthy": True, "redis": "up"}, KNOWN, "healthy"),
        ({"redis": "up"}, KNOWN, "not healthy"),
        ({"processes": [{"name": "redis"}]}, KNOWN, "not healthy"),
        ({"failed_start": {"failures": 1}}, KNOWN, "not healthy"),
        ({}, KNOWN, "the next event of a session starts it"),
        ({}, {**KNOWN, "state": "down"}, "no stack runs, by `hivepipe down`"),
        ({}, {}, "see `hivepipe init`"),
    ],
)
def test_where_no_stack_runs_it_says_what_starts_one(
    report: dict[str, Any], record: dict[str, str], said: str
) -> None:
    found = verdict(Place("/shop", "/shop/.hive-mind", record), {**NONE, **report})
    assert found.removesuffix(", or `hivepipe up -d`").endswith(said)
