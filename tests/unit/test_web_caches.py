"""Answers and parts of pages are made once for a state, within a limit."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from markupsafe import Markup
from starlette.testclient import TestClient

from hivepipe.db.database import Database
from hivepipe.files.state_cache import StateCache
from hivepipe.home import short_hash
from hivepipe.web import background_cache, fragment_cache, templates, view_cache
from hivepipe.web.background_cache import BackgroundCache
from hivepipe.web.fragment_cache import FragmentCache
from hivepipe.web.view_cache import Answer, ViewCache
from tests.web_scene import AT, SESSION, insert


def test_a_result_is_computed_again_when_its_state_differs() -> None:
    cache: StateCache[int] = StateCache(2)
    numbers = count()
    found = [cache.get("a", state, lambda: next(numbers)) for state in (1, 1, 2, 2, 1)]
    assert found == [0, 0, 1, 1, 2]


def test_a_result_of_an_unknown_state_is_not_cached() -> None:
    cache: StateCache[int] = StateCache(2)
    numbers = count()
    assert [cache.get("a", None, lambda: next(numbers)) for _ in range(2)] == [0, 1]
    assert cache.get("a", 1, lambda: next(numbers)) == 2


def test_only_the_last_keys_are_cached() -> None:
    cache: StateCache[int] = StateCache(2)
    numbers = count()
    found = [cache.get(key, 1, lambda: next(numbers)) for key in "abcbca"]
    assert found == [0, 1, 2, 1, 2, 3]


class Counted:
    """Makes numbered answers. `state` changes with each change of the databases."""

    def __init__(self, **more: Any) -> None:
        self.made, self.state, self.more = 0, 0, more
        self.cache = ViewCache(lambda: self.state)

    def make(self) -> Answer:
        self.made += 1
        return Answer(f"{self.made}".encode(), **self.more)

    def get(self, key: str = "now") -> str | bytes:
        return self.cache.get(key, self.make).text.decode()


def test_an_answer_is_cached_until_the_state_changes() -> None:
    counted = Counted()
    assert [counted.get(), counted.get(), counted.get("costs")] == ["1", "1", "2"]
    counted.state = 1
    assert [counted.get(), counted.get()] == ["3", "3"]


def test_an_answer_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, now = Counted(), view_cache.time.monotonic()
    assert counted.get() == "1"
    monkeypatch.setattr(view_cache.time, "monotonic", lambda: now + view_cache.LASTS_SECS + 1)
    assert counted.get() == "2"


@pytest.mark.parametrize("more", [{"status": 404}, {"is_cacheable": False}], ids=["error", "part"])
def test_an_error_or_unfinished_answer_is_not_cached(more: dict[str, Any]) -> None:
    counted = Counted(**more)
    assert [counted.get(), counted.get()] == ["1", "2"]


def test_concurrent_requests_share_one_answer() -> None:
    counted = Counted()
    with ThreadPoolExecutor(20) as pool:
        assert {each.result() for each in [pool.submit(counted.get) for _ in range(20)]} == {"1"}


def test_the_cache_is_bounded() -> None:
    cache = ViewCache(lambda: 0)
    for number in range(20):
        cache.get(number, lambda: Answer(b"x" * (view_cache.MOST_BYTES // 4)))
    assert len(cache._slots) == 4
    assert cache.get(19, lambda: Answer(b"new")).text != b"new"
    assert cache.get(0, lambda: Answer(b"new")).text == b"new"


@pytest.mark.parametrize("more", [{"status": 404}, {"is_cacheable": False}], ids=["error", "part"])
def test_requests_without_a_cached_answer_leave_nothing(more: dict[str, Any]) -> None:
    counted = Counted()
    counted.get()
    counted.more = more
    for number in range(20):
        counted.get(f"/search?q={number}")
    assert len(counted.cache._slots) == 1
    assert counted.get() == "1"


def test_a_request_does_not_forget_one_that_is_being_answered() -> None:
    cache, made = ViewCache(lambda: 0), iter("ab")

    def make() -> Answer:
        cache.get("other", lambda: Answer(b"", 404))
        return Answer(next(made).encode())

    cache.get("now", make)
    assert cache.get("now", make).text == b"a"
    assert len(cache._slots) == 1


def test_an_answer_may_be_dropped_while_sizes_are_added_up() -> None:
    class Slot(view_cache._Slot):
        def __getattribute__(self, name: str) -> Any:
            found = super().__getattribute__(name)
            if name == "answer":
                self.answer = None
            return found

    cache = ViewCache(lambda: 0)
    cache._slots["other"] = Slot(answer=Answer(b"other"))
    assert cache.get("now", lambda: Answer(b"now")).text == b"now"


def test_a_value_is_computed_once_a_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    cache: BackgroundCache[int] = BackgroundCache()

    def refuse(**_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(background_cache, "Thread", refuse)
        with pytest.raises(RuntimeError):
            cache.get("home", lambda: 1)
    assert cache.get("home", lambda: 1) == 1


def test_few_values_are_computed_at_once_and_one_notice_follows_them_all() -> None:
    cache: BackgroundCache[int] = BackgroundCache()
    may_end, notified = Event(), Event()
    begun: list[int] = []
    notices: list[int] = []

    def compute(number: int) -> int:
        begun.append(number)
        may_end.wait(10)
        return number

    def on_ready() -> None:
        notices.append(len(begun))
        notified.set()

    numbers = range(5 * background_cache.MOST_AT_ONCE)
    for number in numbers:
        assert cache.get(str(number), partial(compute, number), on_ready) is None
    assert len(begun) <= background_cache.MOST_AT_ONCE
    may_end.set()
    assert notified.wait(10)
    assert [cache.get(str(number), lambda: -1) for number in numbers] == list(numbers)
    (begun_before,) = notices
    assert begun_before > len(numbers) - background_cache.MOST_AT_ONCE, "a value was pending"


def test_each_expired_value_is_computed_after_the_missing_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secs = [0.0]
    monkeypatch.setattr(background_cache, "time", SimpleNamespace(monotonic=lambda: secs[0]))
    monkeypatch.setattr(background_cache, "MOST_AT_ONCE", 1)
    cache: BackgroundCache[str] = BackgroundCache()
    computed: list[str] = []
    has_begun, may_end, notified = Event(), Event(), Event()

    def compute(key: str) -> str:
        if key == "first":
            has_begun.set()
            may_end.wait(10)
        computed.append(key)
        return key

    for key in "abcd":
        cache.get(key, lambda: "old")
    secs[0] += background_cache.MOST_KEPT_SECS
    cache.get("first", partial(compute, "first"), notified.set)
    assert has_begun.wait(10)
    for key in "abcdxyxabd":
        cache.get(key, partial(compute, key), notified.set)
    cache.get("c", partial(compute, "c"), wait_secs=0)  # a caller that waits
    may_end.set()
    assert notified.wait(10)
    assert computed == ["first", "c", "x", "y", "a", "b", "d"]


def test_many_values_are_kept_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    secs = [0.0]
    monkeypatch.setattr(background_cache, "time", SimpleNamespace(monotonic=lambda: secs[0]))

    def compute() -> int:
        secs[0] += 1
        return int(secs[0])

    few: BackgroundCache[int] = BackgroundCache()
    many: BackgroundCache[int] = BackgroundCache()
    found = [many.get(str(number), compute) for number in range(40)][-1]
    alone = few.get("39", compute)
    secs[0] += 2 * background_cache.KEPT_SECS + 1
    assert many.get("39", compute) == found
    assert few.get("39", compute) != alone


def test_a_change_of_the_database_is_shown_at_once(client: Any, home: Path) -> None:
    assert client.get("/now.json").json()["sessions"][0]["title"] != "changed"
    with closing(Database(home / "hive.db")) as db:
        db.execute("UPDATE sessions SET objective = 'changed' WHERE id = :id", {"id": SESSION})
    assert client.get("/now.json").json()["sessions"][0]["title"] == "changed"


def counting_renderer(size: int = 1) -> Callable[[], Markup]:
    numbers = iter(range(100))
    return lambda: Markup(f"{next(numbers)}".ljust(size))


def test_a_part_is_cached_by_object_and_filters() -> None:
    once, render = FragmentCache(), counting_renderer()
    one, equal = ["a"], ["a"]
    rendered = [once(one, {}, render), once(one, {}, render), once(equal, {}, render)]
    assert rendered == ["0", "0", "1"]
    assert [once(one, {"piece": "2"}, render), once(one, {}, render)] == ["2", "0"]


def test_a_part_of_an_equal_value_is_not_rendered_again() -> None:
    once, render = FragmentCache(), counting_renderer()
    values = [("a", 1), ("a", 1), ("a", 2), ("a", 1)]
    assert [once(value, {}, render) for value in values] == ["0", "0", "1", "0"]


def test_values_with_one_hash_have_their_own_parts() -> None:
    once, render = FragmentCache(), counting_renderer()
    assert hash(-1) == hash(-2)
    assert [once(value, {}, render) for value in (-1, -2, -1)] == ["0", "1", "2"]


def test_the_oldest_parts_are_evicted_and_a_part_that_is_too_large_is_not_cached() -> None:
    once, render = FragmentCache(), counting_renderer(fragment_cache.MOST_BYTES // 2 - 100)
    parts = [["a"], ["b"], ["c"]]
    for part in parts:
        once(part, {}, render)
    assert [once(part, {}, render)[0] for part in reversed(parts)] == ["2", "1", "3"]
    once, render = FragmentCache(), counting_renderer(fragment_cache.MOST_BYTES + 1)
    assert [once(parts, {}, render)[0], once(parts, {}, render)[0]] == ["0", "1"]


def test_parts_without_text_are_bounded_too() -> None:
    once = FragmentCache()
    for number in range(3 * fragment_cache.MOST_PARTS):
        once([number], {}, lambda: Markup(""))
    assert len(once._parts) == fragment_cache.MOST_PARTS
    for number in range(9):
        once(number, {"type": "x" * (fragment_cache.MOST_BYTES // 4)}, lambda: Markup(""))
    assert len(once._parts) == 3


@pytest.mark.parametrize(("path", "table"), [("/agents", "agents"), ("/now?all=1", "sessions")])
def test_only_rows_that_changed_are_rendered_again(
    client: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch, path: str, table: str
) -> None:
    with closing(Database(home / "hive.db")) as db:
        for name in ("one", "two", "three"):
            own = {"id": name, "created_at": AT, "swarm_id": "swarm"}
            ended = {"status": "ended", "updated_at": AT, "project": f"shop {name}"}
            insert(db, "sessions", **own, **ended)
            insert(db, "agents", **own, session_id=name, status="completed", name=f"agent {name}")
    client.get(path)
    write = Mock(wraps=templates._written)
    monkeypatch.setattr(templates, "_written", write)
    with closing(Database(home / "hive.db")) as db:
        db.execute(f"UPDATE {table} SET model = 'renamed' WHERE id = :id", {"id": "two"})
    page = client.get(path).text
    open_cards = page.count('<li class="card">')
    assert page.count("renamed") == 1
    assert page.count("three") > 1
    assert write.call_count == 1 + open_cards


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
