"""Requests to the store of a team's archives."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from hivepipe.summaries.providers import TEAM_STORE
from hivepipe.team.archives import place
from hivepipe.team.archives.stores import Bucket
from tests.loopback import served
from tests.object_store import KEY


class Store(BaseHTTPRequestHandler):
    """A store that notes the objects to delete, by request."""

    requests: list[list[str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        names = re.findall("<Key>(.*?)</Key>", body)
        self.requests.append(names)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        answer = f"<DeleteResult>{deleted}</DeleteResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_words: object) -> None:
        """Print nothing."""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a store."""
    monkeypatch.setenv(TEAM_STORE, KEY)
    Store.requests = []
    with served(Store) as address:
        yield address


def test_objects_are_deleted_by_one_request(store: str) -> None:
    names = [f"object-{number}" for number in range(100)]
    bucket = f"s3://archives?endpoint={store}"
    Bucket(place.parse(bucket)).delete(names)
    assert [sorted(each) for each in Store.requests] == [sorted(names)]
