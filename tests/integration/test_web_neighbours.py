"""Other users of the machine get no access by a cookie or by a command line that they saw."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import Home, until
from tests.installed import AS_USER, require_user
from tests.outcome import outcome_of
from tests.web_scene import line_of, page_process

REQUEST = """
import http.client, json, sys
place, path, headers = sys.argv[1:4]
connection = http.client.HTTPConnection(place)
connection.request("GET", path, headers=json.loads(headers))
answer = connection.getresponse()
print(json.dumps([answer.status, answer.getheader("Set-Cookie") or ""]))
"""
TEXT_BROWSER = """
import http.client, pathlib, sys
from urllib.parse import urlsplit
note, address = sys.argv[1:]
parts = urlsplit(address)
connection = http.client.HTTPConnection(parts.netloc, timeout=60)
connection.request("GET", f"{parts.path}?{parts.query}")
pathlib.Path(note).write_text(str(connection.getresponse().status))
"""
needs_other = pytest.mark.skipif(not AS_USER, reason="only root can act as another user")


@dataclass
class RunningPage:
    """A running page; `opened` is the command line of the browser."""

    place: str
    token: str
    opened: str


@pytest.fixture
def page(private_home: Home, tmp_path: Path) -> Iterator[RunningPage]:
    note = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$*" > {note}.new && mv {note}.new {note}\n')
    browser.chmod(0o700)
    with page_process(private_home, BROWSER=str(browser)) as process:
        address = urlsplit(line_of(process))
        until(note.exists, "no browser was opened")
        yield RunningPage(address.netloc, address.query.partition("=")[2], note.read_text())


def request(
    page: RunningPage, path: str, *, by_other: bool = False, **headers: str
) -> tuple[int, str]:
    """Send a request as the user or as another user; return the status and the cookie."""
    words = [*(AS_USER if by_other else ()), sys.executable, "-I", "-S", "-c", REQUEST]
    output = outcome_of([*words, page.place, path, json.dumps(headers)], check=True, cwd="/").stdout
    status, cookie = json.loads(output)
    return status, cookie.partition(";")[0]


def test_a_browser_that_waits_for_the_page_gets_it(private_home: Home, tmp_path: Path) -> None:
    note, program, browser = (tmp_path / name for name in ("status", "get.py", "browser"))
    program.write_text(TEXT_BROWSER)
    browser.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {program} {note} "$1"\n')
    browser.chmod(0o700)
    with page_process(private_home, BROWSER=str(browser)):
        until(lambda: note.exists() and note.read_text() == "302", "it got no page")


def test_the_browser_is_opened_with_a_ticket_that_is_valid_once(page: RunningPage) -> None:
    assert page.token not in page.opened
    ticket = f"/?{urlsplit(page.opened).query}"
    status, cookie = request(page, ticket)
    assert status == 302
    assert page.token not in cookie
    assert request(page, "/now", Cookie=cookie)[0] == 200
    assert request(page, ticket)[0] == 401


@needs_other
def test_a_ticket_or_cookie_of_another_user_does_not_let_them_in(
    page: RunningPage, private_home: Home
) -> None:
    require_user()
    folder = private_home.database.parent
    assert subprocess.run([*AS_USER, "ls", folder], capture_output=True, check=False).returncode
    ticket = f"/?{urlsplit(page.opened).query}"
    assert request(page, ticket, by_other=True) == (401, "")
    status, cookie = request(page, ticket)
    assert status == 302
    assert request(page, "/now", by_other=True, Cookie=cookie)[0] == 401
    assert request(page, "/now", Cookie=cookie)[0] == 200


@needs_other
def test_a_user_with_the_token_gets_a_cookie_of_their_own(page: RunningPage) -> None:
    require_user()
    status, cookie = request(page, f"/?token={page.token}", by_other=True)
    assert status == 302
    assert request(page, "/now", by_other=True, Cookie=cookie)[0] == 200
    assert request(page, "/now", Cookie=cookie)[0] == 401
