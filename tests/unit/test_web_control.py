"""Forms of `hivepipe web`: who may send one, and which failed jobs it means."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from hivepipe.home import short_hash
from hivepipe.queue.failed_jobs import FailedJob
from hivepipe.web.control import LONGEST_FORM, form_token
from hivepipe.web.failed_choice import Choice, FormError, name_of
from tests.web_scene import TOKEN

OWN = {"Origin": "http://127.0.0.1:9182"}
FORM = {"token": form_token(TOKEN), "what": "retry shown"}


def failed(id: str, operation: str = "insert_agent", **more: Any) -> FailedJob:
    said = {"reason": "Traceback\nno swarm", "failed_at": "2026-11-21T10:00:00.1234Z", **more}
    return FailedJob(id=id, queue="low", target="low", operation=operation, description="",
                     session="", attempts=4, event_time="", payload=None, **said)  # fmt: skip


def chosen(**fields: str) -> Choice:
    return Choice.of_form(urlencode(fields).encode())


# ---- who may send one


def test_only_a_form_of_this_page_is_taken(client: TestClient, home: Path) -> None:
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


def test_what_is_no_form_is_refused(client: TestClient, home: Path) -> None:
    path = f"/queues/{short_hash(str(home))}"
    for content in (b"", b"\xff", b"what=drop+all", b"a=1&" * 20_000, b"x" * (LONGEST_FORM + 1)):
        answer = client.post(path, content=content, headers=OWN)
        assert answer.status_code == 400
        assert "Not done" in answer.text


# ---- what it means


def test_ticked_jobs_are_told_apart_by_every_byte() -> None:
    odd, even = failed("\udcff job"), failed("? job")
    assert chosen(what="discard ticked", job=name_of(odd)).jobs([odd, even]) == [odd]


def test_a_filter_means_what_it_showed_when_it_was_asked() -> None:
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
def test_no_job_at_all_is_not_every_job(what: str) -> None:
    found = [] if what == "discard shown" else [failed("1")]
    with pytest.raises(FormError, match="no failed job is meant"):
        chosen(what=what).jobs(found)
