"""Pages that ask the same between two changes share one answer."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db.database import Database
from hivepipe.web import answers
from hivepipe.web.answers import MOST_BYTES, Answer, Answers
from tests.web_scene import SESSION


class Counted:
    """Makes numbered answers; `state` is what a change changes."""

    def __init__(self, **more: Any) -> None:
        self.made, self.state, self.more = 0, 0, more
        self.answers = Answers(lambda: self.state)

    def make(self) -> Answer:
        self.made += 1
        return Answer(f"{self.made}".encode(), **self.more)

    def get(self, key: str = "now") -> str | bytes:
        return self.answers.get(key, self.make).text.decode()


def test_it_is_the_same_until_something_changes() -> None:
    counted = Counted()
    assert [counted.get(), counted.get(), counted.get("costs")] == ["1", "1", "2"]
    counted.state = 1
    assert [counted.get(), counted.get()] == ["3", "3"]


def test_it_is_new_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, now = Counted(), answers.time.monotonic()
    assert counted.get() == "1"
    monkeypatch.setattr(answers.time, "monotonic", lambda: now + answers.LASTS_SECS + 1)
    assert counted.get() == "2"


@pytest.mark.parametrize("more", [{"status": 404}, {"counts": False}], ids=["error", "unfinished"])
def test_what_is_no_answer_yet_is_asked_again(more: dict[str, Any]) -> None:
    counted = Counted(**more)
    assert [counted.get(), counted.get()] == ["1", "2"]


def test_twenty_pages_at_once_cost_one_look() -> None:
    counted = Counted()
    with ThreadPoolExecutor(20) as pool:
        assert {each.result() for each in [pool.submit(counted.get) for _ in range(20)]} == {"1"}


def test_they_do_not_fill_the_memory() -> None:
    kept = Answers(lambda: 0)
    for number in range(20):
        kept.get(number, lambda: Answer(b"x" * (MOST_BYTES // 4)))
    assert len(kept._slots) == 4
    assert kept.get(19, lambda: Answer(b"new")).text != b"new"
    assert kept.get(0, lambda: Answer(b"new")).text == b"new"


def test_a_change_of_the_store_is_shown_at_once(client: Any, home: Path) -> None:
    assert client.get("/now.json").json()["sessions"][0]["title"] != "changed"
    with closing(Database(home / "hive.db")) as db:
        db.execute("UPDATE sessions SET objective = 'changed' WHERE id = :id", {"id": SESSION})
    assert client.get("/now.json").json()["sessions"][0]["title"] == "changed"
