"""S3 for tests: moto's server on loopback with one bucket."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

KEY = "of-a-member:secret-of-a-member"  # pragma: allowlist secret
BUCKET = "team-archives"


class ObjectStore:
    """A bucket, read by another client than hivepipe's."""

    def __init__(self, port: int) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        import boto3  # noqa: PLC0415  takes long, and few tests need it

        name, _, secret = KEY.partition(":")
        self.client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=name,
            aws_secret_access_key=secret,
            region_name="us-east-1",
        )

    @property
    def place(self) -> str:
        return f"s3://{BUCKET}/hivepipe?endpoint={self.endpoint}"

    def empty(self) -> None:
        """Create the bucket if necessary and delete its objects."""
        names = {each["Name"] for each in self.client.list_buckets()["Buckets"]}
        if BUCKET not in names:
            self.client.create_bucket(Bucket=BUCKET)
        for name in self.objects():
            self.client.delete_object(Bucket=BUCKET, Key=name)

    def objects(self) -> dict[str, bytes]:
        """Return name -> bytes of all objects."""
        listed = self.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        return {each["Key"]: self.read(each["Key"]) for each in listed}

    def read(self, name: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        return content

    def are_named_by_hash(self) -> bool:
        return all(
            name.rpartition("/")[2] == hashlib.sha256(content).hexdigest()
            for name, content in self.objects().items()
        )


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Run a server while the context lasts."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  takes long, and few tests need it

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield ObjectStore(server.get_host_and_port()[1])
    finally:
        server.stop()
