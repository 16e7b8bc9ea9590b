"""Read and write hivepipe's small JSON files. A file is read as the type that was written.

A field that the type lacks is ignored, because a later version may have added the field.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from hivepipe.files.regular_file import MOST_BYTES, read_bytes
from hivepipe.home import write_small

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
D = TypeVar("D")


def read_typed(path: str | Path, kind: type[T], limit: int = MOST_BYTES) -> T:
    """Return a file's content as a `kind`. Raises OSError, or ValueError if it has another type."""
    try:
        # msgspec's own decoder rejects the escapes of a path that is not UTF-8.
        return msgspec.convert(json.loads(read_bytes(path, limit)), kind)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def read_or(path: str | Path, kind: type[T], otherwise: D, limit: int = MOST_BYTES) -> T | D:
    """Return a file's content like `read_typed`, or `otherwise` if it is missing or damaged."""
    try:
        return read_typed(path, kind, limit)
    except (OSError, ValueError):
        return otherwise


def read_object(path: str | Path) -> dict[str, Any]:
    """Return the JSON object in a file, or {} if the file is missing or has no object."""
    return read_or(path, dict[str, Any], {})


def write_typed(path: str | Path, value: "DataclassInstance") -> None:
    """Write a value as JSON to a file, atomically. Raises OSError."""
    write_small(str(path), json.dumps(asdict(value), indent=2) + "\n")
