"""Requests to the store of a team's archives."""

import re
from collections.abc import Iterator

import pytest

from hivepipe.summaries.providers import TEAM_STORE
from hivepipe.team.archives import place
from hivepipe.team.archives.stores import Bucket
from tests.loopback import QuietHandler, served
from tests.object_store import KEY


class Store(QuietHandler):
    """A store that notes the objects to delete, by request, and refuses to tell sizes."""

    requests: list[list[str]]
    written: dict[str, bytes]

    def do_HEAD(self) -> None:
        """Answer as S3 does if the key may not list the bucket."""
        self.send(403)

    def do_PUT(self) -> None:
        self.written[self.path] = self.content()
        self.send(200, etag="x")

    def do_POST(self) -> None:
        names = re.findall("<Key>(.*?)</Key>", self.content().decode())
        self.requests.append(names)
        deleted = "".join(f"<Deleted><Key>{name}</Key></Deleted>" for name in names)
        answer = f"<DeleteResult>{deleted}</DeleteResult>".encode()
        self.send(200, answer)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv(TEAM_STORE, KEY)
    Store.requests, Store.written = [], {}
    with served(Store) as address:
        yield address


def test_objects_are_deleted_by_one_request(store: str) -> None:
    names = [f"object-{number}" for number in range(100)]
    bucket = f"s3://archives?endpoint={store}"
    Bucket(place.parse(bucket)).delete(names)
    assert [sorted(each) for each in Store.requests] == [sorted(names)]


def test_a_key_that_may_not_list_the_bucket_writes_objects(store: str) -> None:
    Bucket(place.parse(f"s3://archives?endpoint={store}")).put("ann/1/x", b"lines")
    assert Store.written == {"/archives/ann/1/x": b"lines"}
