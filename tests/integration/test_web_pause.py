"""The page pauses and resumes a stack; meanwhile events are spooled and none is lost."""

import json
import subprocess
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from hivepipe.home import read_record, record_path, short_hash
from tests.browser_scene import Browser, expect, is_live
from tests.conftest import CLI, Home, fire, until
from tests.payloads import SESSION, SESSION_START
from tests.web_scene import client_of, post


def test_a_stack_that_starts_is_not_shown_as_broken(private_home: Home) -> None:
    page = client_of(private_home.project)
    shown = set()
    with subprocess.Popen([*CLI, "up", "-d"], cwd=private_home.project, env=private_home.env) as up:
        while up.poll() is None:
            shown |= {stack["condition"] for stack in page.get("/queues.json").json()["stacks"]}
    private_home.command("down")
    assert shown <= {"unregistered", "resting", "healthy"}


def test_queues_follow_jobs_that_change_no_database(
    private_home: Home, address: str, browser: Browser
) -> None:
    page = browser.page(address)
    page.goto(page.url.replace("/now", "/queues"))
    is_live(page)
    fire("SessionStart", SESSION_START, private_home.env)
    expect(page.locator("tr", has_text="high").locator(".number")).not_to_have_text(
        "0", timeout=30_000
    )


@pytest.fixture
def page(private_home: Home) -> Iterator[TestClient]:
    private_home.command("up", "-d")
    yield client_of(private_home.project)
    private_home.command("down")


def post_switch(page: TestClient, home: Home, what: str) -> str:
    answer = post(page, f"/queues/{short_hash(str(home.path))}/stack", what=what)
    assert answer.status_code == (200 if "Queues</h1>" in answer.text else 409)
    return answer.text


def test_events_are_spooled_while_paused_and_stored_after_resume(
    page: TestClient, private_home: Home
) -> None:
    assert 'value="pause"' in page.get("/queues").text
    assert "nothing to resume" in post_switch(page, private_home, "resume")

    output = post_switch(page, private_home, "pause")
    assert "Paused" in output
    assert 'value="resume"' in output
    fire("SessionStart", SESSION_START, private_home.env)
    (stack,) = page.get("/queues.json").json()["stacks"]
    assert (stack["state"], stack["redis"], stack["spool"]) == ("down", "down", 1)

    assert "Paused" not in post_switch(page, private_home, "resume")
    (stack,) = page.get("/queues.json").json()["stacks"]
    assert (stack["state"], stack["redis"]) == ("on", "up")
    until(lambda: SESSION[:8] in private_home.command("sessions"), "the event is not stored")
    actions = json.loads(private_home.command("failed", "actions", "--json"))["actions"]
    assert [each["action"] for each in actions] == ["resume", "pause"]
    assert "resume" in private_home.command("failed", "actions")
    assert "resume</td>" in page.get("/queues").text


def test_a_failed_resume_shows_the_reason(page: TestClient, private_home: Home) -> None:
    post_switch(page, private_home, "pause")
    record = read_record(str(private_home.path))
    text = "".join(f"{name}={value}\n" for name, value in {**record, "python": "/gone"}.items())
    with open(record_path(str(private_home.path)), "w") as file:
        file.write(text)
    assert "the stack was not started: [Errno 2]" in post_switch(page, private_home, "resume")
