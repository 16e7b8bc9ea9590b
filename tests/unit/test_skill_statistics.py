"""Statistics of skill uses, and the two files that export them."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe.skills.exports import INDEXED_SESSIONS, KEPT_DAYS, index_json, usage_json
from hivepipe.skills.statistics import (
    ImportedSkill,
    SkillStatistics,
    SkillUse,
    local_day,
    statistics,
)

START = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)


def use(skill: str, minute: int, session: str = "s1", success: bool = True) -> SkillUse:
    at = (START + timedelta(minutes=minute)).isoformat(timespec="milliseconds")
    return SkillUse(skill, at.replace("+00:00", "Z"), session, f"args {minute}", success)


def day_of(at: str) -> str:
    return at[:10]


def statistics_of(*uses: SkillUse) -> dict[str, SkillStatistics]:
    return statistics(uses, day_of)


def usage(skills: dict[str, SkillStatistics]) -> dict[str, Any]:
    content = orjson.loads(usage_json(skills))
    assert list(content) == ["skills"]
    found: dict[str, Any] = content["skills"]
    return found


def test_the_file_has_exactly_the_keys_that_its_readers_know() -> None:
    found = usage(
        statistics_of(use("debugging", 0, "s1"), use("debugging", 40, "s2", success=False))
    )
    assert found == {
        "debugging": {
            "count": 2,
            "last_used": "2026-11-21T00:10:00.000Z",
            "invocations": [
                {"timestamp": "2026-11-20T23:30:00.000Z", "session_id": "s1",
                 "context": "args 0", "success": True},
                {"timestamp": "2026-11-21T00:10:00.000Z", "session_id": "s2",
                 "context": "args 40", "success": False},
            ],
            "sessions": ["s1", "s2"],
            "session_count": 2,
            "success_rate": 0.5,
            "daily": {"2026-11-20": 1, "2026-11-21": 1},
        }
    }  # fmt: skip


def test_rate_and_count_cover_all_uses_and_the_list_the_last_hundred() -> None:
    uses = [use("x", minute, success=minute >= 30) for minute in range(150)]
    found = usage(statistics_of(*uses))["x"]
    assert (found["count"], found["success_rate"]) == (150, 0.8)
    assert [each["context"] for each in found["invocations"]] == [
        f"args {minute}" for minute in range(50, 150)
    ]


def test_the_newest_hundred_sessions_are_named_and_all_are_counted() -> None:
    """A session that uses the skill again counts as new."""
    uses = [use("x", number, f"s{number}") for number in range(130)]
    found = usage(statistics_of(*uses, use("x", 200, "s3")))["x"]
    assert found["session_count"] == 130
    assert found["sessions"] == [*(f"s{number}" for number in range(31, 130)), "s3"]


def test_only_days_of_the_newest_year_are_kept() -> None:
    uses = [use("x", 24 * 60 * day) for day in range(KEPT_DAYS + 10)]
    found = usage(statistics_of(*uses))["x"]
    assert len(found["daily"]) == KEPT_DAYS
    assert "2026-11-20" not in found["daily"]
    assert found["count"] == KEPT_DAYS + 10


def test_days_are_computed_by_the_given_function() -> None:
    unused = ImportedSkill("y", 0, 0, "", (), {})  # of a predecessor
    found = usage(statistics([use("x", 0)], lambda _time: "a local day", [unused]))
    assert found["x"]["daily"] == {"a local day": 1}
    assert (found["y"]["count"], found["y"]["success_rate"]) == (0, 0)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kathmandu"])
def test_the_first_and_the_last_hour_of_the_calendar_have_a_day(
    zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as changed_zone:
        changed_zone.setenv("TZ", zone)
        time.tzset()
        days = [local_day("0001-01-01T00:00:00.000Z"), local_day("9999-12-31T23:59:59.999Z")]
    time.tzset()
    assert days == ["0001-01-01", "9999-12-31"]


def test_the_index_maps_skills_days_and_sessions_to_each_other() -> None:
    found = orjson.loads(
        index_json(
            statistics_of(
                use("a", 0, "s1"), use("b", 1, "s1"), use("a", 60, "s2"), use("a", 61, "s1")
            )
        )
    )
    assert found == {
        "skills": {
            "a": {"sessions": ["s2", "s1"], "days": ["2026-11-20", "2026-11-21"]},
            "b": {"sessions": ["s1"], "days": ["2026-11-20"]},
        },
        "days": {"2026-11-20": ["a", "b"], "2026-11-21": ["a"]},
        "sessions": {"s2": ["a"], "s1": ["a", "b"]},
    }
    many = INDEXED_SESSIONS + 5
    uses = (use("a", number, f"s{number}") for number in range(many))
    newest = orjson.loads(index_json(statistics_of(*uses)))["sessions"]
    assert list(newest) == [f"s{number}" for number in range(5, many)]


def test_the_files_are_valid_without_any_use_and_with_any_name() -> None:
    assert orjson.loads(usage_json({})) == {"skills": {}}
    assert orjson.loads(index_json({})) == {"skills": {}, "days": {}, "sessions": {}}
    for name in ('"; DROP', "acme:x", "ü \u2028", "__proto__"):
        text = usage_json(statistics_of(use(name, 0))).decode()
        assert list(json.loads(text)["skills"]) == [name]
        assert text.endswith("\n")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5000), st.booleans())))
def test_counts_add_up(samples: list[tuple[str, int, bool]]) -> None:
    uses = [use(skill, minute, success=good) for skill, minute, good in sorted(samples)]
    found = usage(statistics_of(*uses))
    assert sum(entry["count"] for entry in found.values()) == len(uses)
    for name, entry in found.items():
        mine = [each for each in uses if each.skill == name]
        assert sum(entry["daily"].values()) == entry["count"] == len(mine)
        assert entry["success_rate"] == round(sum(e.success for e in mine) / len(mine), 4)
