"""S3 for tests: moto's server on loopback with one bucket."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

KEY = "of-a-member:secret-of-a-member"  # pragma: allowlist secret
BUCKET = "team-archives"


class ObjectStore:
    """A bucket, which the test reads in the server's memory, without a client."""

    def __init__(self, port: int, backend: Any) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self._backend = backend

    @property
    def place(self) -> str:
        return f"s3://{BUCKET}/hivepipe?endpoint={self.endpoint}"

    def empty(self) -> None:
        self._backend.reset()
        self._backend.create_bucket(BUCKET, "us-east-1")

    def objects(self) -> dict[str, bytes]:
        return {name: key.value for name, key in self._backend.buckets[BUCKET].keys.items()}

    def write(self, name: str, content: bytes) -> None:
        self._backend.put_object(BUCKET, name, content)

    def are_named_by_hash(self) -> bool:
        return all(
            name.rpartition("/")[2] == hashlib.sha256(content).hexdigest()
            for name, content in self.objects().items()
        )


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run a server while the context lasts."""
    # These imports take long, and few tests need them.
    from moto.core import DEFAULT_ACCOUNT_ID  # noqa: PLC0415
    from moto.s3.models import s3_backends  # noqa: PLC0415
    from moto.server import ThreadedMotoServer  # noqa: PLC0415

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield ObjectStore(server.get_host_and_port()[1], s3_backends[DEFAULT_ACCOUNT_ID]["aws"])
    finally:
        server.stop()
