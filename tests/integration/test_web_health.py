"""The health view agrees with `doctor` and `disk`, and viewing it writes nothing."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from hivepipe.home import short_hash
from hivepipe.queue import connection
from hivepipe.web import background_cache, health_view
from hivepipe.web.background_cache import BackgroundCache
from hivepipe.web.health_view import LATER
from tests.conftest import Home, Server, Writer, fire, is_drained, until
from tests.payloads import SESSION_START
from tests.web_scene import client_of


@pytest.fixture
def page(private_home: Home) -> TestClient:
    return client_of(private_home.project)


def shown(page: TestClient) -> dict[str, Any]:
    (stack,) = page.get("/health.json").json()["stacks"]
    return dict(stack)


def files(root: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of all files, except those that each SQLite reader creates."""
    found = [path for path in root.rglob("*") if path.is_file() and path.suffix != ".db-shm"]
    return {
        str(each): (of.st_size, of.st_mtime_ns) for each in found if (of := each.stat()).st_size
    }


def test_the_page_agrees_with_doctor_and_disk(
    page: TestClient, private_home: Home, redis_server: Server, writer: Writer
) -> None:
    writer.start()
    fire("SessionStart", SESSION_START, private_home.env)
    until(lambda: is_drained(private_home, redis_server, writer), "the session is not recorded")
    writer.end()
    (private_home.path / "notes").write_text("for others")
    for path in (private_home.path / "notes", private_home.path):
        path.chmod(0o755)
    before = files(private_home.root)

    on_page = {name: shown(page)[name] for name in ("doctor", "disk")}
    html = page.get("/health").text
    assert files(private_home.root) == before, "viewing changed a file"

    doctor = json.loads(private_home.command("doctor", "--json", expect=1))
    assert on_page["doctor"] == {name: doctor[name] for name in on_page["doctor"]}
    disk = json.loads(private_home.command("disk", "--json"))
    assert on_page["disk"] == {name: disk[name] for name in on_page["disk"]}
    assert f"chmod -R go-rwx {private_home.path}/notes" in html
    kept = private_home.command("disk").partition("kept: ")[2].strip()
    assert f"Kept: {kept}." in html


def test_checks_are_cached_for_some_seconds(
    page: TestClient, private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shown(page)
    private_home.command("off")
    assert shown(page)["doctor"] == first["doctor"]
    assert shown(page)["state"] == "off", "the state is outdated"
    monkeypatch.setattr("hivepipe.web.health_view._checks", BackgroundCache())
    later = shown(page)
    assert later["checked_at"] > first["checked_at"]
    assert "hivepipe on" in [each["mend"] for each in later["doctor"]["findings"]]


def test_requests_at_the_same_time_share_one_search() -> None:
    values, found = BackgroundCache[int](), iter(range(100))
    search = partial(values.get, "home", lambda: time.sleep(0.05) or next(found))
    with ThreadPoolExecutor(8) as pool:
        assert {each.result() for each in [pool.submit(search) for _ in range(8)]} == {0}
    assert values.get("other", lambda: next(found)) == 1


def test_a_long_search_delays_no_other_request() -> None:
    values, may_end = BackgroundCache[int](), Event()
    search = partial(values.get, "home", lambda: may_end.wait(30) and 7, wait_secs=0.1)
    assert search() is None
    may_end.set()
    assert values.get("home", lambda: 8) == 7
    assert search() == 7


def test_a_slow_value_is_cached_for_some_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For example, the findings of one of forty homes, whose Redis hung."""
    clock = SimpleNamespace(secs=0.0)
    monkeypatch.setattr(background_cache, "time", SimpleNamespace(monotonic=lambda: clock.secs))
    values = BackgroundCache[int]()
    for number in range(40):
        values.get(f"home {number}", lambda: 0)

    def hang() -> int:
        clock.secs += 1000
        return 1

    assert values.get("home", hang) == 1
    clock.secs += 299
    assert values.get("home", lambda: 2) == 1
    clock.secs += 2
    assert values.get("home", lambda: 2) == 2


def test_all_waiting_requests_get_the_error() -> None:
    values = BackgroundCache[int]()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            values.get("home", lambda: 1 // 0)


def test_checks_that_take_longer_are_shown_later(
    page: TestClient, private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BackgroundCache, "get", lambda *_: None)
    found = shown(page)
    assert (found["doctor"], found["disk"], found["disk_trouble"]) == (None, None, LATER)
    assert "<h3 data-later>" in page.get("/health").text


def test_a_page_does_not_wait_for_checks_and_is_notified(
    page: TestClient, private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end, check = Event(), health_view._check
    monkeypatch.setattr(health_view, "_check", lambda known: may_end.wait(30) and check(known))
    monkeypatch.setattr(health_view, "_checks", BackgroundCache())
    html = page.get("/health").text
    assert "<h3 data-later>" in html
    assert LATER in html
    assert "No alert." in html
    may_end.set()
    assert shown(page)["doctor"]
    assert "data-later" not in page.get("/health").text


def test_invalid_limits_of_retention_are_named(page: TestClient, private_home: Home) -> None:
    private_home.path.mkdir(exist_ok=True)
    (private_home.path / "config.toml").write_text("[retention]\nlogs = 0\n")
    assert shown(page)["disk"] is None
    assert "logs must be a number above 0" in page.get("/health").text


def test_a_redis_that_stops_answering_holds_the_page_up_for_a_limited_time(
    page: TestClient, private_home: Home, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "REPLY_SECS", 0.2)
    with redis_server.client() as client:
        client.execute_command("CLIENT", "PAUSE", 600_000, "WRITE")  # type: ignore[no-untyped-call]
    for view in ("/queues", "/health"):
        (stack,) = page.get(f"{view}.json").json()["stacks"]
        assert (stack["redis"], stack["queues"]) == ("up", None)
        assert page.get(view).status_code == 200
    assert stack["doctor"]  # its checks end, too
    home = short_hash(str(private_home.path))
    assert page.get(f"/rq/{home}/0/data/queues.json").status_code == 503
