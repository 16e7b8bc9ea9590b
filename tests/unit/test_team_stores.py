"""Requests to the store of a team's archives."""

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hivepipe.summaries.providers import TEAM_STORE
from hivepipe.team.archives import place
from hivepipe.team.archives.stores import Bucket
from tests.object_store import KEY


class Store(ThreadingHTTPServer):
    """A store that notes the objects to delete, by request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[list[str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Store

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        names = re.findall("<Key>(.*?)</Key>", body)
        self.server.requests.append(names)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        answer = f"<DeleteResult>{deleted}</DeleteResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_words: object) -> None:
        """Print nothing."""


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv(TEAM_STORE, KEY)
    with Store() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_objects_are_deleted_by_one_request(store: Store) -> None:
    names = [f"object-{number}" for number in range(100)]
    bucket = f"s3://archives?endpoint=http://127.0.0.1:{store.server_port}"
    Bucket(place.parse(bucket)).delete(names)
    assert [sorted(each) for each in store.requests] == [sorted(names)]
