"""Other users of the machine get in neither by a cookie nor by a command line that they saw."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import CLI, Home, until
from tests.installed import AS_USER, require_user

ASK = """
import http.client, json, sys
place, path, headers = sys.argv[1:4]
connection = http.client.HTTPConnection(place)
connection.request("GET", path, headers=json.loads(headers))
answer = connection.getresponse()
print(json.dumps([answer.status, answer.getheader("Set-Cookie") or ""]))
"""
needs_other = pytest.mark.skipif(not AS_USER, reason="only root can act as another user")


@dataclass
class Served:
    """A running page; `opened`: the command line of the browser."""

    place: str
    token: str
    opened: str


@pytest.fixture
def served(private_home: Home, tmp_path: Path) -> Iterator[Served]:
    note = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$*" > {note}.new && mv {note}.new {note}\n')
    browser.chmod(0o700)
    process = subprocess.Popen(
        [*CLI, "web", "--port", "0"],
        env=private_home.env | {"BROWSER": str(browser)},
        cwd=private_home.project,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    address = urlsplit(process.stdout.readline().strip())
    until(note.exists, "no browser was opened")
    yield Served(address.netloc, address.query.partition("=")[2], note.read_text())
    process.terminate()
    process.communicate(timeout=30)


def ask(served: Served, path: str, *, by_other: bool = False, **headers: str) -> tuple[int, str]:
    """Ask as the user or as another one; return the status and the cookie."""
    words = [*(AS_USER if by_other else ()), sys.executable, "-I", "-S", "-c", ASK]
    said = subprocess.run(
        [*words, served.place, path, json.dumps(headers)],
        capture_output=True, check=True, cwd="/", timeout=60,
    ).stdout  # fmt: skip
    status, cookie = json.loads(said)
    return status, cookie.partition(";")[0]


def test_the_browser_is_opened_with_a_ticket_that_counts_once(served: Served) -> None:
    assert served.token not in served.opened
    ticket = f"/?{urlsplit(served.opened).query}"
    status, cookie = ask(served, ticket)
    assert status == 302
    assert served.token not in cookie
    assert ask(served, "/now", Cookie=cookie)[0] == 200
    assert ask(served, ticket)[0] == 401


@needs_other
def test_a_ticket_or_cookie_of_another_user_does_not_let_them_in(
    served: Served, private_home: Home
) -> None:
    require_user()
    folder = private_home.database.parent
    assert subprocess.run([*AS_USER, "ls", folder], capture_output=True, check=False).returncode
    ticket = f"/?{urlsplit(served.opened).query}"
    assert ask(served, ticket, by_other=True) == (401, "")
    status, cookie = ask(served, ticket)
    assert status == 302
    assert ask(served, "/now", by_other=True, Cookie=cookie)[0] == 401
    assert ask(served, "/now", Cookie=cookie)[0] == 200


@needs_other
def test_a_user_with_the_token_gets_a_cookie_of_their_own(served: Served) -> None:
    require_user()
    status, cookie = ask(served, f"/?token={served.token}", by_other=True)
    assert status == 302
    assert ask(served, "/now", by_other=True, Cookie=cookie)[0] == 200
    assert ask(served, "/now", Cookie=cookie)[0] == 401
