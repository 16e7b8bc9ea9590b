"""A checksum of everything that redaction depends on: this package and the user's rules."""

import json
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from hivepipe.files.regular_file import read_bytes

_FOLDER = Path(__file__).parent


_FILES = sorted([*_FOLDER.glob("*.py"), *_FOLDER.glob("*.toml")])
# Read at import, because an upgrade may replace the files of a running process.
_PACKAGE = blake2b(b"".join(map(read_bytes, _FILES))).digest()


def checksum_of(texts: Iterable[str]) -> int:
    """Return the checksum of redaction with these config files, in this order. It is never 0."""
    found = blake2b(_PACKAGE, digest_size=8)
    for text in texts:
        # An invalid file has no rules; its parser reports the error.
        with suppress(tomllib.TOMLDecodeError, RecursionError):
            if section := tomllib.loads(text).get("redaction"):
                found.update(json.dumps(section, sort_keys=True, default=str).encode())
    return int.from_bytes(found.digest()) or 1
