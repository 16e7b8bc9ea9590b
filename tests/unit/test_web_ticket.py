"""Tickets for the browser: valid once, for a minute, on this server and for the user."""

import json
import os
import socket

import pytest
from starlette.testclient import TestClient

from hivepipe.web import process, ticket
from hivepipe.web.authentication import Authentication
from hivepipe.web.peer import user_of_peer
from hivepipe.web.ticket import LASTS_SECS, Tickets, with_ticket
from tests.web_scene import BASE

TOKEN = "a token/of+the=test"
ADDRESS = "http://127.0.0.1:9182/?token=a%20token%2Fof%2Bthe%3Dtest"


def new_ticket() -> str:
    base, _, given = with_ticket(ADDRESS).partition("?ticket=")
    assert base == "http://127.0.0.1:9182/"
    return given


@pytest.mark.parametrize("user", ["", "0", str(os.getuid())], ids=["?", "root", "own"])
def test_a_ticket_is_valid_once(user: str) -> None:
    tickets, one, other = Tickets(TOKEN, {}), new_ticket(), new_ticket()
    assert [tickets.redeem(each, user) for each in (one, other, one)] == [True, True, False]


def test_a_used_ticket_stays_used_after_an_upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    one, statuses = new_ticket(), []

    def serve(app: Authentication, listening: socket.socket) -> bool:
        answer = TestClient(app, BASE).get(f"/?ticket={one}", follow_redirects=False)
        statuses.append(answer.status_code)
        listening.close()
        return True

    def start(listening: socket.socket, **arguments: object) -> None:
        listening.close()
        if len(statuses) == 2:
            return
        reading, writing = os.pipe()
        os.write(writing, json.dumps(arguments).encode())
        os.close(writing)
        process.main(reading, socket.socket().detach())

    monkeypatch.setattr(process, "serve", serve)
    monkeypatch.setattr(process, "exec_server", start)
    start(socket.socket(), token=TOKEN, reader_token="", is_local=True)
    assert statuses == [302, 401]


def test_a_ticket_expires_after_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    one, now = new_ticket(), ticket.time.time()
    monkeypatch.setattr(ticket.time, "time", lambda: now + LASTS_SECS + 1)
    assert not Tickets(TOKEN, {}).redeem(one, "")


INVALID = ["", ".", "..", "9.9.9", "99999999999999..", "٣.a.b", "\ud800.a.b", "-1.a.b"]


def test_an_invalid_or_forged_ticket_is_refused_and_one_of_another_user() -> None:
    one = new_ticket()
    ends, rest = one.split(".", 1)
    for given in (*INVALID, f"{int(ends) + 1}.{rest}"):
        assert not Tickets(TOKEN, {}).redeem(given, ""), given
    assert not Tickets("another token", {}).redeem(one, "")
    tickets = Tickets(TOKEN, {})
    assert not tickets.redeem(one, "65533")
    assert tickets.redeem(one, ""), "another user cannot void it"


@pytest.mark.skipif(
    not hasattr(socket, "AF_NETLINK"), reason="only Linux reports the user of a connection"
)
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_kernel_reports_the_user_of_a_connection(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listening, socket.socket(family) as near:
        near.connect(listening.getsockname()[:2])
        far, client = listening.accept()
        with far:
            ends = {"client": client[:2], "server": far.getsockname()[:2]}
            assert user_of_peer(ends) == str(os.getuid())
            assert user_of_peer({**ends, "client": (host, 1)}) == ""


@pytest.mark.parametrize(
    "client",
    [None, ("testclient", 50000), ("10.0.0.1", None), ("::1", 1)],
    ids=["none", "no address", "no port", "no connection"],
)
def test_the_user_is_empty_without_the_kernel(client: object) -> None:
    assert user_of_peer({"client": client, "server": ("127.0.0.1", 9182)}) == ""
