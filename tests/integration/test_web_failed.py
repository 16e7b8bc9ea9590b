"""`hivepipe web` retries and discards failed jobs: confirmed once, reported, and recorded."""

import json
import re
from collections.abc import Callable

import httpx2
import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from hivepipe.files.action_log import NAME
from hivepipe.home import short_hash
from tests.conftest import Home, Server
from tests.integration.test_failed import add_failed_job, listed
from tests.web_scene import client_of, line_of, page_process, post

HOSTILE = "<script>alert(1)</script>"
Send = Callable[..., Response]


@pytest.fixture
def page(private_home: Home, redis_server: Server) -> TestClient:
    return client_of(private_home.project)


@pytest.fixture
def send(page: TestClient, private_home: Home) -> Send:
    path = f"/queues/{short_hash(str(private_home.path))}"
    return lambda what, *jobs, **more: post(page, path, what=what, job=[*jobs], **more)


def actions(home: Home) -> list[dict[str, object]]:
    return list(json.loads(home.command("failed", "actions", "--json"))["actions"])


def test_a_selection_is_confirmed_once_then_done_reported_and_recorded(
    page: TestClient, send: Send, private_home: Home, redis_server: Server
) -> None:
    for id in ("one", "two", f"three{HOSTILE}"):
        add_failed_job(redis_server, id, b"\xff")
    assert 'value="two"' in page.get("/queues").text

    names = re.findall(r'name="job" id="[^"]+" value="([^"]+)"', page.get("/queues").text)
    mine = [name for name in names if name != "two"]
    asked = send("discard ticked", *mine)
    assert "Discard 2 failed jobs of" in asked.text
    assert HOSTILE not in asked.text
    assert len(listed(private_home)) == 3, "nothing is done yet"
    assert actions(private_home) == []

    reported = send("discard ticked", *mine, sure="yes")
    assert "Discarded: 2 of 2." in reported.text
    assert HOSTILE not in reported.text
    assert [job["id"] for job in listed(private_home)] == ["two"]
    (action,) = actions(private_home)
    assert action["action"] == "discard"
    assert action["by"] == "page, testclient"
    assert action["operations"] == {"?": 2}
    assert page.get("/queues.json").json()["stacks"][0]["actions"] == [action]
    assert (private_home.logs / NAME).stat().st_mode & 0o777 == 0o600

    again = send("discard ticked", *mine, sure="yes")
    assert again.status_code == 400
    assert "discarded them" in again.text


def test_a_filter_excludes_jobs_that_failed_after_the_question(
    send: Send, private_home: Home, redis_server: Server
) -> None:
    add_failed_job(redis_server, "early", b"\xff", ended_at="2026-11-21T10:00:00.5Z")
    asked = send("retry shown", operation="?")
    assert "Retry 1 failed job of" in asked.text
    found = re.search(r'name="until" value="([^"]+)"', asked.text)
    assert found
    add_failed_job(redis_server, "late", b"\xff", ended_at="2999-01-01T00:00:00.5Z")
    reported = send("retry shown", operation="?", until=found[1], sure="yes")
    assert "Sent back to the queues: 1 of 1." in reported.text
    assert [job["id"] for job in listed(private_home)] == ["late"]


def test_a_filter_includes_jobs_that_failed_before_the_clock_was_set_back(
    send: Send, redis_server: Server
) -> None:
    add_failed_job(redis_server, "ahead", b"\xff", ended_at="2999-01-01T00:00:00.5Z")
    found = re.search(r'name="until" value="([^"]+)"', send("retry shown", operation="?").text)
    assert found
    told = send("retry shown", operation="?", until=found[1], sure="yes")
    assert "Sent back to the queues: 1 of 1." in told.text


def test_commands_record_their_actions_in_the_same_list(
    private_home: Home, redis_server: Server
) -> None:
    for id in ("one", "two"):
        add_failed_job(redis_server, id, b"\xff")
    private_home.command("failed", "retry", "one")
    private_home.command("failed", "discard", "--all", "--yes")
    private_home.command("failed", "discard", "--all", "--yes")
    newest, oldest = actions(private_home)
    assert (oldest["action"], oldest["by"], oldest["ids"]) == ("retry", "command", ["one"])
    assert (newest["action"], newest["chosen"], newest["done"]) == ("discard", 1, 1)
    assert "1 of 1" in private_home.command("failed", "actions")


def test_invalid_lines_of_the_action_log_are_skipped(
    private_home: Home, redis_server: Server
) -> None:
    add_failed_job(redis_server, "one", b"\xff")
    private_home.command("failed", "discard", "one", "--yes")
    log = private_home.logs / NAME
    log.write_bytes(b'{"at": 1}\n[]\n\xff\n' + log.read_bytes() + b"{")
    assert len(actions(private_home)) == 1


def test_the_second_address_is_read_only(private_home: Home, redis_server: Server) -> None:
    add_failed_job(redis_server, "one", b"\xff")
    with page_process(private_home, "--no-open", "--read-only-token") as process:
        mine, others = line_of(process), line_of(process)
        for address, may_change in ((mine, True), (others.removeprefix("only reads: "), False)):
            base, _, token = address.partition("/?token=")
            known = {"Authorization": f"Bearer {token}"}
            shown = httpx2.get(f"{base}/queues", headers=known, timeout=60).text
            assert ("Retry ticked" in shown) == may_change
            assert ("This address is read-only." in shown) != may_change
