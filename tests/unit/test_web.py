"""`hivepipe web`: authentication, hostile texts, and JSON that equals the output of commands."""

import asyncio
import errno
import re
import subprocess
import sys
import time
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from hivepipe.db.database import Database
from hivepipe.home import record_path, short_hash
from hivepipe.times import stored_time
from hivepipe.web import server
from hivepipe.web.authentication import cookie_name, cookie_value
from hivepipe.web.changes import Changes, signature, with_logs
from hivepipe.web.folders import PAGES
from hivepipe.web.templates import local_time, time_left
from hivepipe.web.views import VIEWS
from tests.web_scene import AT, BASE, SESSION, TOKEN, client_of, insert


def paths(home: Path) -> list[str]:
    return [*(f"/{name}" for name in VIEWS), f"/session/{short_hash(str(home))}/{SESSION}"]


# ---- authentication
def test_without_the_token_every_request_is_refused(
    anonymous_client: TestClient, home: Path
) -> None:
    for path in ("/", "/events", "/static/live.js", "/now?token=wrong", *paths(home)):
        assert anonymous_client.get(path).status_code == 401, path
    for token, status in (("wrong", 401), (TOKEN, 200)):
        headers = {"Authorization": f"Bearer {token}"}
        assert anonymous_client.get("/now", headers=headers).status_code == status


def test_the_token_becomes_a_cookie_and_leaves_the_address(anonymous_client: TestClient) -> None:
    answer = anonymous_client.get(f"http://127.0.0.1:9182//evil.example?token={TOKEN}")
    assert answer.headers["Location"] == "/evil.example"
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{cookie_name(TOKEN)}={cookie_value(TOKEN, '')};")
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


def test_other_hosts_and_other_pages_are_refused(client: TestClient) -> None:
    assert client.get("/now").status_code == 200
    for host in ("evil.example", "127.0.0.1.evil.example", "10.0.0.1:9182", "[", ""):
        assert client.get("/now", headers={"Host": host}).status_code == 403, host
    for origin in ("http://evil.example", "https://evil.example", "http://127.0.0.1:1", "null"):
        assert client.get("/now", headers={"Origin": origin}).status_code == 403, origin
    for own in ("http://127.0.0.1:9182", "https://127.0.0.1:9182"):  # the second by a TLS proxy
        assert client.get("/now", headers={"Origin": own}).status_code == 200


def test_the_path_that_is_checked_is_the_path_that_is_served(client: TestClient) -> None:
    """The URL of a request also depends on the header Host, and has no tabs."""
    assert client.get("/m%09cp").status_code == 404
    assert client.post("/que%09ues/x", headers={"Origin": BASE}).status_code == 405


def test_no_view_accepts_a_form(client: TestClient, home: Path) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        for path in ("/", *paths(home)):
            assert client.request(method, path).status_code == 405, (method, path)


def test_every_answer_has_a_strict_policy(client: TestClient, anonymous_client: TestClient) -> None:
    for path in ("/now", "/now.json", "/static/live.js", "/nothing"):
        answer = client.get(path)
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    client.cookies.clear()
    assert "Content-Security-Policy" in client.get("/now").headers


def test_the_tools_accept_the_token_as_bearer_only(client: TestClient) -> None:
    def post(content: bytes, **headers: str) -> Response:
        return client.post("/mcp", content=content, headers=headers)

    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    known = {"Authorization": f"Bearer {TOKEN}"}
    assert post(ping).status_code == 401  # in spite of the cookie
    assert client.get(f"/mcp?token={TOKEN}").status_code == 401
    assert post(ping, Authorization="Bearer wrong").status_code == 401
    assert post(ping, Origin="http://evil.example", **known).status_code == 403
    assert post(ping, Host="evil.example", **known).status_code == 403
    assert client.get("/mcp", headers=known).status_code == 405
    for scheme in ("Bearer ", "bearer ", "BEARER  "):
        assert post(ping, Authorization=f"{scheme}{TOKEN}").json()["result"] == {}
    assert post(b'{"method": "notifications/initialized"}', **known).status_code == 202
    assert post(b" " * (1 << 20) + ping, **known).status_code == 413
    assert post(b"{", **known).json()["error"]["code"] == -32700


# ---- views
def test_an_unknown_path_has_a_page_with_title_and_navigation(client: TestClient) -> None:
    for path in ("/nothing", "/session/x", "/static/nothing.js"):
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert "<title>No such page · hivepipe</title>" in answer.text
        assert '<a href="/now">Now</a>' in answer.text
        assert "JSON</a>" not in answer.text


def test_hostile_texts_stay_texts(client: TestClient, home: Path) -> None:
    """No page has a script or a style of its own."""
    shown = ""
    for path in paths(home):
        answer = client.get(path)
        text = answer.text
        assert answer.status_code == 200, text
        for hostile in ("<img", "<script>", "onerror=alert(1)>", "<style", " style="):
            assert hostile not in text
        assert text.count("<script") == text.count('<script src="/static/live.js" defer></script>')
        assert "//" not in text.replace("http://www.w3.org", "").split("<main")[0].split("<nav")[0]
        shown += text
    assert "&lt;script&gt;alert(1)" in shown
    assert "{{7*7}}" in shown


def test_skills_are_filtered_by_name_and_failure(client: TestClient) -> None:
    found = {"skill=SCRIPT": 1, "skill=deploy": 0, "failed=1": 1, "skill=deploy&failed=1": 0}
    for query, shown in found.items():
        assert len(client.get(f"/skills.json?{query}").json()["skills"]) == shown, query
        assert ("No skill matches" in client.get(f"/skills?{query}").text) is not bool(shown)


STACKS: list[tuple[dict[str, Any], int]] = [
    ({}, 0),
    ({"doctor": None}, 0),
    ({"doctor": {"healthy": False}}, 1),
    ({"alerts": ["backlog"]}, 1),
    ({"is_fine": False}, 1),
]


def test_health_can_be_limited_to_problems(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.web.view_cache.LASTS_SECS", 0.0)
    fine = {"alerts": [], "is_fine": True, "doctor": {"healthy": True}}
    for stack, shown in STACKS:
        health = {**fine, **stack}
        monkeypatch.setattr("hivepipe.web.health_view._with_checks", lambda *_, it=health: it)
        assert len(client.get("/health.json").json()["stacks"]) == 1
        answer = client.get("/health.json?only=problems").json()
        assert (len(answer["stacks"]), answer["left_out"]) == (shown, 1 - shown), stack


def test_stopped_stacks_are_reported_as_status_does(client: TestClient, home: Path) -> None:
    (stack,) = client.get("/health.json").json()["stacks"]
    assert stack["home"] == str(home)
    assert stack["redis"] == "down"
    (queues,) = client.get("/queues.json").json()["stacks"]
    assert queues["queues"] is None
    assert "not set up here; events wait on disk" in client.get("/queues").text


def test_filters_are_in_the_address(client: TestClient, home: Path) -> None:
    assert client.get("/agents.json?type=other").json()["sessions"] == []
    assert client.get("/agents.json?outcome=lost").json()["sessions"] == []
    assert len(client.get("/agents.json?outcome=running").json()["sessions"]) == 1
    assert client.get("/costs.json?model=other").json()["costs"] == []
    assert client.get("/now.json?home=0123456789abcdef").status_code == 404
    assert client.get("/now?home=0123456789abcdef").status_code == 404
    answer = client.get(f"/session/{short_hash(str(home))}/nothing")
    assert answer.status_code == 404
    assert "no session has the id nothing" in answer.text


@pytest.mark.parametrize(
    ("view", "names"),
    [
        ("agents", ("type", "outcome")),
        ("costs", ("model", "since", "until")),
        ("skills", ("skill", "failed")),
    ],
)
def test_a_view_has_a_field_for_each_filter_and_says_that_nothing_matches(
    client: TestClient, view: str, names: tuple[str, ...]
) -> None:
    shown = client.get(f"/{view}?{names[0]}=other").text
    assert [name for name in names if f' name="{name}"' not in shown] == []
    assert "matches these filters" in shown


def test_a_blob_instead_of_a_time_is_no_server_error(client: TestClient, home: Path) -> None:
    with closing(Database(home / "hive.db")) as db:
        db.execute("UPDATE agents SET created_at = x'fffe'", {})
    for path in paths(home):
        for suffix in ("", ".json"):
            assert client.get(path + suffix).status_code in (200, 404), path + suffix


def test_a_project_whose_name_is_not_utf8_is_shown(
    client: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = "/home/ana/caf\udce9"
    monkeypatch.setattr("hivepipe.reading.homes.project_of", lambda _home: project)
    for path in (*paths(home), f"/session/{short_hash(str(home))}/nothing"):
        assert "caf\\udce9" in client.get(path).text, path
        assert client.get(f"{path}.json").json()
    assert client.get("/costs.json").json()["costs"][0]["project"] == project


def test_the_choice_of_a_project_begins_with_its_name(
    client: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = "/srv/clients/a-long-name/work/shop"
    monkeypatch.setattr("hivepipe.reading.homes.project_of", lambda _home: project)
    shown = client.get(f"/now?home={short_hash(str(home))}").text
    assert f'<select id="home" name="home" title="{project}">' in shown
    assert f'title="{project}" selected>shop in /srv/clients/a-long-name/work</option>' in shown


def test_a_proxy_is_asked_not_to_hold_the_changes_back(client: TestClient) -> None:
    answer = client.head("/events")  # opens no stream
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.headers["X-Accel-Buffering"] == "no"


def test_empty_views_name_the_next_command(tmp_path: Path, client: TestClient, home: Path) -> None:
    (home / "hive.db").unlink()
    assert "hivepipe init" in client.get("/now").text
    for name in ("agents", "costs", "skills"):
        assert client.get(f"/{name}").status_code == 200


def test_the_regions_of_a_page_have_different_names(
    client_with_archive: TestClient, home: Path
) -> None:
    page = client_with_archive.get(f"/session/{short_hash(str(home))}/{SESSION}").text
    headings = re.findall(r'aria-labelledby="\w+"><h2 id="\w+">([^<]+)', page)
    names = headings + re.findall(r'role="region" aria-label="([^"]+)', page)
    assert len(names) > 3
    assert sorted(names) == sorted(set(names))


def test_fields_have_ids_and_regions_of_a_stack_its_project() -> None:
    """By its id a field keeps its entry when the page is reloaded."""
    pages = {path.stem: path.read_text() for path in sorted(PAGES.rglob("*.html"))}
    fields = re.findall(r'<(?:input|select) (?!type="hidden")[^>]*>', "".join(pages.values()))
    assert len(fields) > 15
    assert [field for field in fields if " id=" not in field] == []
    for page in (pages["queues"], pages["health"]):
        names = re.findall(r'role="region" aria-label="([^"]+)', page.partition("in stacks %}")[2])
        assert len(names) > 2
        assert all("each.project" in each for each in names), names


def test_the_remaining_time_is_shown_in_its_largest_unit() -> None:
    now_ns = time.time_ns()
    assert time_left(stored_time(now_ns + 150 * 10**9)) == "2 min left"
    assert time_left(stored_time(now_ns + 30 * 10**9)).endswith(" s left")
    assert time_left(stored_time(now_ns - 1)) == time_left("soon") == "cold"
    assert (local_time("soon"), local_time(None)) == ("soon", "")


# ---- changes
def test_a_commit_changes_the_signature_and_reading_does_not(home: Path) -> None:
    path = home / "hive.db"
    with closing(Database(path)) as db:
        before = signature(with_logs([path]))
        db.rows("SELECT * FROM sessions")
        assert signature(with_logs([path])) == before
        insert(db, "prompts", prompt="next", created_at=AT, session_id=SESSION)
        assert signature(with_logs([path])) != before


def test_pages_follow_the_records_of_homes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = Path(record_path(str(home)))
    made: list[Changes] = []
    monkeypatch.setattr(
        "hivepipe.web.app.Changes", lambda paths: made.append(Changes(paths)) or made[0]
    )
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(f"home={home}\nstate=on\n")
    client_of(home)
    before = made[0]._state()
    record.write_text(f"home={home}\nstate=down\n")
    assert made[0]._state() != before


def test_followers_are_notified_and_without_them_nothing_is_watched(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.web.changes.POLL_SECS", 0.01)
    path = home / "hive.db"

    async def play() -> None:
        changes = Changes(lambda: with_logs([path]))
        assert changes._watcher is None
        follower = changes.follow()
        assert "alive" in await anext(follower)
        waiting = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0.05)
        with closing(Database(path)) as db:
            insert(db, "prompts", prompt="next", created_at=AT, session_id=SESSION)
        assert await asyncio.wait_for(waiting, 20) == "data: changed\n\n"
        waiting = asyncio.ensure_future(anext(follower))
        changes.notify()
        assert await asyncio.wait_for(waiting, 20) == "data: changed\n\n"
        await follower.aclose()  # type: ignore[attr-defined]
        assert changes._watcher is not None
        await asyncio.wait_for(changes._watcher, 20)

    asyncio.run(play())


def test_open_pages_are_told_after_a_poll_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hivepipe.web.changes.POLL_SECS", 0.01)
    polls, is_later = count(), asyncio.Event()

    def databases() -> list[Path]:
        number = next(polls)
        if number > 3:
            is_later.set()
        if number < 3:
            raise OSError(errno.EMFILE, "Too many open files")
        return []

    async def play() -> None:
        changes = Changes(databases)
        follower = changes.follow()
        await anext(follower)
        await asyncio.wait_for(is_later.wait(), 5)
        changes.notify()
        assert await asyncio.wait_for(anext(follower), 5) == "data: changed\n\n"
        await follower.aclose()  # type: ignore[attr-defined]

    asyncio.run(play())


def test_a_failed_poll_tells_open_pages_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.web.changes.POLL_SECS", 0.01)
    monkeypatch.setattr("hivepipe.web.changes.KEEP_ALIVE_SECS", 0.3)
    polls = count()

    def databases() -> list[Path]:
        if next(polls) % 2:
            raise OSError(errno.EMFILE, "Too many open files")
        return [home / "hive.db"]

    async def play() -> None:
        follower = Changes(databases).follow()
        assert [await anext(follower) for _ in range(2)] == ["event: alive\ndata: -\n\n"] * 2
        assert next(polls) > 3
        await follower.aclose()  # type: ignore[attr-defined]

    asyncio.run(play())


def test_a_change_in_the_moment_of_the_keep_alive_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hivepipe.web.changes.KEEP_ALIVE_SECS", 0.05)

    async def play() -> str:
        changes = Changes(list)
        follower = changes.follow()
        await anext(follower)
        waiting = asyncio.ensure_future(anext(follower))
        await asyncio.sleep(0)
        (changed,) = changes._followers
        # The loop is held up until the time is over, and the change is noticed then.
        asyncio.get_running_loop().call_later(0.05, changed.set)
        time.sleep(0.1)
        return await waiting

    assert asyncio.run(play()) == "data: changed\n\n"


ALL_VIEWS = """
from importlib import import_module
from hivepipe.web.views import VIEWS
for name in (*VIEWS, "session"):
    import_module(f"hivepipe.web.{name}_view")
"""


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        (
            "import hivepipe.web.process",
            ("click", "jinja2", "watchfiles", "redis", "re2", "sqlite3", "hivepipe.db.database"),
        ),
        (ALL_VIEWS, ("re2", "hivepipe.redact.redactor", "flask", "hivepipe.cli.main")),
    ],
    ids=["idle", "in use"],
)
def test_a_page_imports_only_what_it_shows(code: str, unwanted: tuple[str, ...]) -> None:
    script = f"{code}\nimport sys\nprint(*{{*{unwanted!r}}} & {{*sys.modules}})"
    words = [sys.executable, "-I", "-c", script]
    assert subprocess.check_output(words, text=True, timeout=60).split() == []


@pytest.mark.parametrize(("left", "status"), [("", 503), ("1.0.0", 500)])
def test_an_error_during_an_upgrade_is_answered_as_the_upgrade(
    monkeypatch: pytest.MonkeyPatch, left: str, status: int
) -> None:
    versions = ["1.0.0"]
    monkeypatch.setattr(server, "installed", lambda: versions[-1])

    def view(_request: object) -> None:
        versions.append(left)  # pip removes files while the view is made
        raise ModuleNotFoundError("a view")

    app = server.WhileInstalled(Starlette(routes=[Route("/", view)]), "1.0.0")
    answer = TestClient(app, BASE, raise_server_exceptions=status == 503).get("/")
    assert (answer.status_code, answer.headers.get("Refresh")) == (status, {503: "3"}.get(status))
    assert ("install hivepipe again" in answer.text) is (status == 503)
