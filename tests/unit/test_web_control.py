"""Forms of `hivepipe web`: authentication, and which failed jobs they select."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from hivepipe.home import locate, short_hash
from hivepipe.queue.failed_jobs import FailedJob
from hivepipe.web.app import web_app
from hivepipe.web.authentication import cookie_name, form_token
from hivepipe.web.control import LONGEST_FORM
from hivepipe.web.failed_choice import Choice, FormError, name_of
from hivepipe.web.views import VIEWS
from tests.web_scene import TOKEN

OWN = {"Origin": "http://127.0.0.1:9182"}
REPORT = {
    "home": "",
    "condition": "running",
    "state": "on",
    "healthy": True,
    "trouble": None,
    "alerts": [],
    "processes": [],
    "redis": "up",
    "queues": {},
    "latencies": None,
    "oldest_waiting_secs": None,
    "spool": 0,
}
FORM = {"token": form_token(TOKEN), "what": "retry shown"}


def failed(id: str, operation: str = "insert_agent", **more: Any) -> FailedJob:
    fields = {"reason": "Traceback\nno swarm", "failed_at": "2026-11-21T10:00:00.1234Z", **more}
    return FailedJob(id=id, queue="low", target="low", operation=operation, description="",
                     session="", attempts=4, event_time="", payload=None, **fields)  # fmt: skip


@pytest.fixture
def queue_with_a_failed_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace Redis with a queue that has one failed job."""
    monkeypatch.setattr("hivepipe.web.queues_view.settled_report", lambda *_: REPORT)
    jobs = nullcontext(SimpleNamespace(jobs=lambda: [failed("1")]))
    monkeypatch.setattr("hivepipe.web.queues_view.failed_jobs", lambda _: jobs)


def chosen(**fields: str) -> Choice:
    return Choice.of_form({name: [value] for name, value in fields.items()})


def test_only_a_form_of_this_page_is_accepted(client: TestClient, home: Path) -> None:
    path = f"/queues/{short_hash(str(home))}"
    answer = client.post(path, data=FORM, headers=OWN)
    assert answer.status_code == 409
    assert "Redis does not answer" in answer.text
    assert client.post(path, data=FORM).status_code == 403
    for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
        assert client.post(path, data=FORM, headers={"Origin": origin}).status_code == 403
    for token in ("", "wrong", TOKEN, "\u00e9"):
        answer = client.post(path, data={**FORM, "token": token}, headers=OWN)
        assert answer.status_code == 400
        assert "earlier run" in answer.text
    assert client.get(path).status_code == 405
    assert client.post("/queues/0123456789abcdef", data=FORM, headers=OWN).status_code == 409
    client.cookies.clear()
    assert client.post(path, data=FORM, headers=OWN).status_code == 401


def test_a_read_only_token_shows_all_and_changes_nothing(
    home: Path, queue_with_a_failed_job: None
) -> None:
    app = web_app(locate(str(home.parent)), TOKEN, "reader", is_local=True)
    reader = TestClient(app, base_url="http://127.0.0.1:9182", follow_redirects=False)
    assert reader.get("/now?token=reader").status_code == 302
    for name in VIEWS:
        assert reader.get(f"/{name}").status_code == 200
        assert form_token(TOKEN) not in reader.get(f"/{name}").text
    assert "is read-only" in reader.get("/queues").text
    path = f"/queues/{short_hash(str(home))}"
    for headers in (OWN, {**OWN, "Authorization": "Bearer reader"}):
        answer = reader.post(path, data=FORM, headers=headers)
        assert (answer.status_code, answer.text) == (403, "this address is read-only\n")
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    known = {"Authorization": "Bearer reader"}
    assert reader.post("/mcp", content=ping, headers=known).status_code == 200
    assert reader.get(f"/now?token={TOKEN}").status_code == 302
    assert form_token(TOKEN) in reader.get("/queues").text


def test_without_a_read_only_token_an_empty_one_admits_nobody(anonymous_client: TestClient) -> None:
    assert anonymous_client.get("/now?token=").status_code == 401
    cookie = {"Cookie": f"{cookie_name('')}="}
    assert anonymous_client.get("/now", headers=cookie).status_code == 401
    assert anonymous_client.get("/now", headers={"Authorization": "Bearer "}).status_code == 401


def test_a_malformed_form_is_refused(client: TestClient, home: Path) -> None:
    path = f"/queues/{short_hash(str(home))}"
    for content in (b"", b"\xff", b"what=drop+all", b"a=1&" * 20_000, b"x" * (LONGEST_FORM + 1)):
        answer = client.post(path, content=content, headers=OWN)
        assert answer.status_code == 400
        assert "Not done" in answer.text


def test_ticked_jobs_are_distinguished_by_every_byte() -> None:
    odd, even = failed("\udcff job"), failed("? job")
    assert chosen(what="discard ticked", job=name_of(odd)).jobs([odd, even]) == [odd]


def test_a_filter_selects_the_jobs_shown_when_it_was_confirmed() -> None:
    first, other = failed("1"), failed("2", reason="no session")
    later, of_another = failed("3", failed_at="2026-11-21T10:00:09Z"), failed("4", "end_session")
    choice = chosen(
        what="retry shown",
        operation="insert_agent",
        reason="NO SWARM",
        until="2026-11-21T10:00:05.000Z",
    )
    assert choice.jobs([first, other, later, of_another]) == [first]


@pytest.mark.parametrize("what", ["retry ticked", "discard shown"])
def test_a_form_that_selects_no_job_is_refused(what: str) -> None:
    found = [] if what == "discard shown" else [failed("1")]
    with pytest.raises(FormError, match="no failed job is selected"):
        chosen(what=what).jobs(found)


def test_a_form_pauses_or_resumes_and_does_nothing_else(client: TestClient, home: Path) -> None:
    path = f"/queues/{short_hash(str(home))}/stack"
    form = {"token": form_token(TOKEN), "what": "resume"}
    answer = client.post(path, data=form, headers=OWN)
    assert answer.status_code == 409
    assert "nothing to resume" in answer.text
    for wrong in ({"token": "wrong"}, {"what": "retry shown"}, {"what": ""}):
        assert client.post(path, data={**form, **wrong}, headers=OWN).status_code == 400
    many = "&".join(f"field{number}=1" for number in range(20))
    for body in (b"\xff", many.encode(), b"x" * (LONGEST_FORM + 1)):
        assert client.post(path, content=body, headers=OWN).status_code == 400
    assert client.post(path, data=form).status_code == 403
    assert client.get(path).status_code == 405


@pytest.mark.usefixtures("queue_with_a_failed_job")
def test_durations_of_jobs_are_shown(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    took = {"jobs": 2, "p50_ms": 4.0, "p99_ms": 20.0}
    course = [{"at": "2026-11-21T10:00:00.0000Z", **took}]
    report = REPORT | {"latencies": {"operations": {"start_session": took}, "course": course}}
    monkeypatch.setattr("hivepipe.web.queues_view.settled_report", lambda *_: report)
    shown = client.get("/queues").text
    assert '<th scope="row">start_session</th><td class="number">2</td>' in shown
    assert "2 jobs, p50 4 ms, p99 20 ms" in shown


def test_a_paused_stack_names_its_waiting_events(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.web.view_cache.LASTS_SECS", 0.0)
    for spool, text in ((1, "1 event waits"), (2, "2 events wait")):
        paused = {**REPORT, "state": "down", "queues": None, "spool": spool}
        monkeypatch.setattr("hivepipe.web.queues_view.settled_report", lambda *_, it=paused: it)
        assert f"{text} on disk." in client.get("/queues").text


def test_a_read_only_token_cannot_pause_and_gets_no_button(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = {**REPORT, "processes": [{"name": "writer"}]}
    monkeypatch.setattr("hivepipe.web.queues_view.settled_report", lambda *_: running)
    monkeypatch.setattr(
        "hivepipe.web.queues_view.failed_jobs", lambda _: nullcontext(SimpleNamespace(jobs=list))
    )
    app = web_app(locate(str(home.parent)), TOKEN, "reader", is_local=True)
    for token, may_change in (("reader", False), (TOKEN, True)):
        page = TestClient(app, base_url="http://127.0.0.1:9182")
        page.get(f"/skills?token={token}")
        assert ('value="pause"' in page.get("/queues").text) == may_change
        if not may_change:
            path = f"/queues/{short_hash(str(home))}/stack"
            form = {"token": form_token(TOKEN), "what": "pause"}
            assert page.post(path, data=form, headers=OWN).status_code == 403
