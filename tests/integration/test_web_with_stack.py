"""`web = true`: one page for all stacks of the user, at the same address again."""

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
def two(private_home: Home) -> Iterator[list[Home]]:
    """Two homes of a user who wants the page to run with the stack."""
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
        ask(home, "down")


def ask(home: Home, *words: str) -> str:
    return COMMANDS.run(words, "", home.env, home.project, 120).stdout


def record(home: Home) -> Path:
    return Path(home.env["XDG_STATE_HOME"], "hivepipe", "web.json")


def address(home: Home) -> str:
    """Return the address that `hivepipe web` prints of the page that runs; "": none does."""
    if not record(home).exists():
        return ""
    try:
        return ask(home, "web", "--no-open").strip()
    except subprocess.TimeoutExpired:  # it served a page itself
        return ""


def serves(page: str) -> bool:
    cookies = urllib.request.HTTPCookieProcessor()
    browser = urllib.request.build_opener(urllib.request.ProxyHandler({}), cookies)
    try:
        with browser.open(page, timeout=30) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def test_one_page_runs_and_another_stack_takes_it_over(two: list[Home]) -> None:
    first, second = two
    ask(first, "up", "-d")
    until(lambda: record(first).exists(), "no page", STARTED_SECS)
    page = address(first)
    until(lambda: serves(page), "the page does not answer", STARTED_SECS)
    assert stat.S_IMODE(record(first).stat().st_mode) == 0o600
    running = json.loads(ask(first, "status", "--json"))["processes"]
    assert "web" in [each["name"] for each in running if each["state"] == "running"]
    ask(second, "up", "-d")
    assert address(second) == page
    assert not serves(page.replace("token=", "token=x"))
    ask(first, "down")
    until(lambda: serves(page), "the other stack does not take it over", STARTED_SECS)
    assert address(second) == page
    ask(second, "down")
    assert not serves(page)
