"""The page pauses and resumes a stack: events wait on disk meanwhile, and nothing is lost."""

import json
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from hivepipe.home import locate, read_record, record_path, short_hash
from hivepipe.web.admission import form_token
from hivepipe.web.app import web_app
from tests.conftest import Home, fire, until
from tests.payloads import SESSION, SESSION_START

TOKEN = "a-token-of-the-test"


@pytest.fixture
def page(private_home: Home) -> Iterator[TestClient]:
    private_home.command("up", "-d")
    app = web_app(locate(str(private_home.project)), TOKEN, is_local=True)
    client = TestClient(app, base_url="http://127.0.0.1:9182")
    client.get(f"/now?token={TOKEN}")
    yield client
    private_home.command("down")


def switch(page: TestClient, home: Home, what: str) -> str:
    fields = {"token": form_token(TOKEN), "what": what}
    path = f"/queues/{short_hash(str(home.path))}/stack"
    answer = page.post(path, data=fields, headers={"Origin": "http://127.0.0.1:9182"})
    assert answer.status_code == (200 if "Queues</h1>" in answer.text else 409)
    return answer.text


def test_events_wait_while_it_is_paused_and_are_stored_once_it_is_resumed(
    page: TestClient, private_home: Home
) -> None:
    assert 'value="pause"' in page.get("/queues").text
    assert "nothing to resume" in switch(page, private_home, "resume")

    said = switch(page, private_home, "pause")
    assert "Paused" in said
    assert 'value="resume"' in said
    fire("SessionStart", SESSION_START, private_home.env)
    (stack,) = page.get("/queues.json").json()["stacks"]
    assert (stack["state"], stack["redis"], stack["spool"]) == ("down", "down", 1)

    assert "Paused" not in switch(page, private_home, "resume")
    (stack,) = page.get("/queues.json").json()["stacks"]
    assert (stack["state"], stack["redis"]) == ("on", "up")
    until(lambda: SESSION[:8] in private_home.command("sessions"), "the event is not stored")
    actions = json.loads(private_home.command("failed", "actions", "--json"))["actions"]
    assert [each["action"] for each in actions] == ["resume", "pause"]
    assert "resume" in private_home.command("failed", "actions")
    assert "resume</td>" in page.get("/queues").text


def test_what_cannot_be_resumed_says_why(page: TestClient, private_home: Home) -> None:
    switch(page, private_home, "pause")
    record = read_record(str(private_home.path))
    text = "".join(f"{name}={value}\n" for name, value in {**record, "python": "/gone"}.items())
    with open(record_path(str(private_home.path)), "w") as file:
        file.write(text)
    assert "the stack was not started: [Errno 2]" in switch(page, private_home, "resume")
