"""`web = true`: one page serves all stacks of the user at a stable address."""

import json
import socket
import stat
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import COMMANDS, Home, until

STARTED_SECS = 60  # the slow worker's heartbeat and the supervisor's tick, on a loaded machine


@pytest.fixture
def two_homes(private_home: Home) -> Iterator[list[Home]]:
    """Two homes of a user with `web = true`."""
    other = Home(private_home.root, "-other")
    other.project = private_home.root / "other"
    other.env["CLAUDE_PROJECT_DIR"] = str(other.project)
    other.make()
    config = private_home.root / ".config" / "hivepipe" / "config.toml"
    config.parent.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    config.write_text(f"web = true\nweb_port = {port}\n")
    homes = [private_home, other]
    yield homes
    for home in homes:
        run(home, "down")


def run(home: Home, *words: str) -> str:
    return COMMANDS.run(words, "", home.env, home.project, 120).stdout


def page_record(home: Home) -> Path:
    return Path(home.env["XDG_STATE_HOME"], "hivepipe", "web.json")


def address(home: Home) -> str:
    """Return the address that `hivepipe web` prints of a running page, or "" if there is none."""
    if not page_record(home).exists():
        return ""
    try:
        return run(home, "web", "--no-open").strip()
    except subprocess.TimeoutExpired:  # the command served a page itself
        return ""


def is_served(page: str) -> bool:
    cookies = urllib.request.HTTPCookieProcessor()
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
    try:
        with browser.open(page, timeout=30) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def test_one_page_runs_and_is_taken_over_by_another_stack(two_homes: list[Home]) -> None:
    first, second = two_homes
    run(first, "up", "-d")
    until(lambda: page_record(first).exists(), "no page", STARTED_SECS)
    page = address(first)
    until(lambda: is_served(page), "the page does not answer", STARTED_SECS)
    assert stat.S_IMODE(page_record(first).stat().st_mode) == 0o600
    running = json.loads(run(first, "status", "--json"))["processes"]
    assert "web" in [each["name"] for each in running if each["state"] == "running"]
    run(second, "up", "-d")
    assert address(second) == page
    assert not is_served(page.replace("token=", "token=x"))
    run(first, "down")
    until(lambda: is_served(page), "the other stack does not take it over", STARTED_SECS)
    assert address(second) == page
    run(second, "down")
    assert not is_served(page)
