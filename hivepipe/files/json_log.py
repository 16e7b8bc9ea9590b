"""Logs in the home's `logs/` with one JSON object per line. Several processes may append."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import msgspec
import orjson

from hivepipe.files.log_lines import append_whole, open_locked
from hivepipe.files.regular_file import regular
from hivepipe.home import make_folders

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")

LARGEST_BYTES = 4_000_000


def append(home: str, name: str, entry: "DataclassInstance") -> None:
    """Append one whole entry or nothing. A full log becomes `<name>.1` first. Raises OSError."""
    make_folders(f"{home}/logs")
    path = f"{home}/logs/{name}"
    descriptor = open_locked(path)
    try:
        if os.fstat(descriptor).st_size > LARGEST_BYTES:
            os.replace(path, f"{path}.1")
            append(home, name, entry)
            return
        append_whole(descriptor, orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
    finally:
        os.close(descriptor)


def entries(home: str, name: str, kind: type[T]) -> Iterator[T]:
    """Yield the entries of `<name>.1`, then of the log; skip invalid lines. Raises OSError."""
    for each in (f"{name}.1", name):
        try:
            with open(f"{home}/logs/{each}", "rb", opener=regular) as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            continue
        for line in lines:
            try:
                yield msgspec.convert(orjson.loads(line), kind)
            except ValueError:  # also msgspec's errors
                continue
