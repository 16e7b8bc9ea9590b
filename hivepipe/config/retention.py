"""Retention of files, from `[retention]` in config.toml.

    archives = 365     days since a transcript's archive grew
    logs = 30          days since a rotated log was written; for the audit log always 90
    spool = 14         days that an event waits in the spool
    spool_mb = 200     the oldest events beyond that size are deleted
    workers = 365      days since a hive worker was archived or deleted: folder, rows, costs

The user's file can set any value. A home's file can come with a repository, so it can only prolong
retention. A `git pull` must not delete anything.
"""

import tomllib
from typing import Any, NamedTuple

from hivepipe.config import setting_table
from hivepipe.errors import RetentionError


class Limits(NamedTuple):
    """The limits of retention in days; `spool_mb` is in megabytes."""

    archives: float = 365
    logs: float = 30
    spool: float = 14
    spool_mb: float = 200
    workers: float = 365


def limits_of(home: str) -> Limits:
    """Return the user's limits, or longer ones of the home's file. Raises RetentionError."""
    users, homes = setting_table.files(home)
    limits = Limits()._replace(**_section(users))
    longer = {
        name: value for name, value in _section(homes).items() if value > getattr(limits, name)
    }
    return limits._replace(**longer)


def fault(home: str) -> str:
    """Return the error of an invalid `[retention]` section, or ""."""
    try:
        limits_of(home)
    except RetentionError as error:
        return str(error)
    return ""


def _section(path: str) -> dict[str, float]:
    found = _read(path)
    for name, value in found.items():
        if name not in Limits._fields:
            known = ", ".join(Limits._fields)
            raise RetentionError(f"{path}: [retention] has no setting {name!r}; it has {known}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
            raise RetentionError(f"{path}: [retention] {name} must be a number above 0")
    return found


def _read(path: str) -> dict[str, Any]:
    try:
        section = tomllib.loads(setting_table.text_of(path)).get("retention", {})
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise RetentionError(f"{path}: cannot be read: {error}") from error
    if not isinstance(section, dict):
        raise RetentionError(f"{path}: `retention` must be a section, [retention]")
    return section
