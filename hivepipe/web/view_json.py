"""The JSON of a view; dataclasses and named tuples become objects at any depth."""

import json
from dataclasses import fields, is_dataclass
from typing import Any

import orjson


def json_of(content: object) -> bytes:
    try:
        return orjson.dumps(content, default=_plain)
    except TypeError:  # lone surrogates and large numbers, which only `json` supports
        return json.dumps(_plain_throughout(content)).encode()


def _plain(value: Any) -> object:
    """Return the JSON form of a value that JSON does not support."""
    if isinstance(value, set):
        return sorted(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return value._asdict() if hasattr(value, "_asdict") else str(value)


def _plain_throughout(value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {name: _plain_throughout(each) for name, each in value.items()}
    if type(value) in (list, tuple):
        return [_plain_throughout(each) for each in value]  # type: ignore[attr-defined]
    return _plain_throughout(_plain(value))
