"""A large part of a page is rendered once per object."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup
from starlette.testclient import TestClient

from hivepipe.db.database import Database
from hivepipe.home import short_hash
from hivepipe.web.fragment_cache import MOST_BYTES, FragmentCache
from tests.web_scene import SESSION, insert


def counting_renderer(size: int = 1) -> Callable[[], Markup]:
    numbers = iter(range(100))
    return lambda: Markup(f"{next(numbers)}".ljust(size))


def test_a_part_is_cached_by_object_and_filters() -> None:
    once, render = FragmentCache(), counting_renderer()
    one, equal = ["a"], ["a"]
    rendered = [once(one, {}, render), once(one, {}, render), once(equal, {}, render)]
    assert rendered == ["0", "0", "1"]
    assert [once(one, {"piece": "2"}, render), once(one, {}, render)] == ["2", "0"]


def test_the_oldest_parts_are_evicted_and_a_part_that_is_too_large_is_not_cached() -> None:
    once, render = FragmentCache(), counting_renderer(MOST_BYTES // 2)
    parts = [["a"], ["b"], ["c"]]
    for part in parts:
        once(part, {}, render)
    assert [once(part, {}, render)[0] for part in reversed(parts)] == ["2", "1", "3"]
    once, render = FragmentCache(), counting_renderer(MOST_BYTES + 1)
    assert [once(parts, {}, render)[0], once(parts, {}, render)[0]] == ["0", "1"]


def test_new_rows_are_shown_beside_cached_parts(
    client_with_archive: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/session/{short_hash(str(home))}/{SESSION}"
    made: list[Any] = []
    monkeypatch.setattr(
        "hivepipe.web.session_view.drawing_of", lambda *rendered: made.append(rendered)
    )
    before = client_with_archive.get(path).text
    db = Database(home / "hive.db")
    insert(db, "prompts", prompt="and what now", created_at="2026-11-21T11:00:00.000Z",
           session_id=SESSION)  # fmt: skip
    db.close()
    after = client_with_archive.get(path).text
    assert len(made) == 1, "the archive is the same"
    assert "and what now" in after
    assert "and what now" not in before
    conversation = '<article class="piece user depth-0"'
    assert before.count(conversation) == after.count(conversation) > 0
