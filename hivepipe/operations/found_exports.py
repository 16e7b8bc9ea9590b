"""Import a predecessor's exports: `skill-usage.json`, its index, `archive-index.json`.

Entry point for importers: `import_exports(home, folder)`. The folder may be the home's own logs
folder or another folder; its files are not changed.
"""

import math
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import orjson

from hivepipe.db.applied import is_imported, mark_imported
from hivepipe.db.database import opened
from hivepipe.db.imported_skills import add_skill, counts_as_own
from hivepipe.db.legacy_rows import utc_time
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.skills import skill_statistics
from hivepipe.events.claude_code import CAP_ARGUMENTS, CAP_NAME, clean, valid_id
from hivepipe.files.exports import Owner, owner_of
from hivepipe.files.folders import Folder
from hivepipe.files.manifest import Manifest, digest
from hivepipe.skills.exports import index_json
from hivepipe.skills.statistics import ImportedSkill, SkillUse, local_day

USAGE, USAGE_INDEX = "skill-usage.json", "skill-usage-index.json"
ARCHIVE_INDEX = "archive-index.json"
TAKEN, KNOWN, REFUSED, LEFT = "taken", "here already", "refused", "left where it is"

LARGEST_BYTES = 64 << 20
LARGEST_COUNT = 2**53
MOST_SESSIONS = 10_000
MOST_DAYS = 3660


class Row(NamedTuple):
    """The result of importing one file, or one skill in it."""

    path: str
    kind: str
    outcome: str
    reason: str = ""
    key: str = ""  # key of the archive that has the lines


def import_exports(home: str, folder: str) -> list[Row]:
    """Import the skills of a predecessor's exports into the store; return a row for each file.

    Repeated calls import a file once: it is identified by its content, and the counts of a later
    version replace the earlier counts. After a kill the store has all skills of a file or none of
    them. A skill that cannot be read has its own row, and does not prevent the import of other
    skills. The indexes have no further information: they are reported and skipped. The files are
    not changed; in the home's own folder the next export renames them, and `uninstall` restores
    them. After StoreError or OSError the import can be repeated later.
    """
    manifest = Manifest(home)
    rows: list[Row] = []
    try:
        with Folder(folder) as there:
            for name in (USAGE, USAGE_INDEX, ARCHIVE_INDEX):
                if owner_of(there, manifest, name) is Owner.OTHER:
                    rows += _import_export(home, manifest, there, name)
    except FileNotFoundError:
        return []
    return rows


def _import_export(home: str, manifest: Manifest, folder: Folder, name: str) -> Iterator[Row]:
    path = f"{folder.path}/{name}"
    data = _data_of(folder, name)
    if data is None:
        yield Row(path, name, REFUSED, "it is not a file, or larger than 64 MB")
    elif manifest.wrote(name, data):  # the file is hivepipe's export from another place
        yield Row(path, name, KNOWN, "hivepipe wrote it")
    elif name != USAGE:
        if name == USAGE_INDEX and _is_own_index(home, data):
            manifest.expect(name, data, None)
            return
        yield Row(path, name, LEFT, "hivepipe makes its own index from the files themselves")
    else:
        yield from _import_usage(home, manifest, path, data)


def _data_of(folder: Folder, name: str) -> bytes | None:
    status = folder.status(name)
    if status is None or status.st_size > LARGEST_BYTES:
        return None
    try:
        return folder.read(name)
    except OSError:
        return None


def _import_usage(home: str, manifest: Manifest, path: str, data: bytes) -> Iterator[Row]:
    try:
        skills = orjson.loads(data)["skills"]
        entries = [(str(name), entry) for name, entry in skills.items()]
    except (ValueError, TypeError, KeyError, AttributeError):
        yield Row(path, USAGE, REFUSED, "it has no object `skills`")
        return
    known = digest(data)[:32]
    with opened(home) as db, db.transaction():
        if is_imported(db, known):
            yield Row(path, USAGE, KNOWN)
            return
        read = [(name, _skill(name, entry)) for name, entry in entries]
        good = [skill for _, skill in read if isinstance(skill, _Skill)]
        if good and counts_as_own(db, [(each.total, each.uses) for each in good]):
            manifest.expect(USAGE, data, None)
            yield Row(path, USAGE, KNOWN, "hivepipe 1.0.0 wrote it")
            return
        for each in good:
            add_skill(db, each.total, each.uses)
        mark_imported(db, known)
    yield Row(path, USAGE, TAKEN, f"{len(good)} skills")
    for name, skill in read:
        if isinstance(skill, str):
            what = f"skill {clean(name)[:CAP_NAME]}"
            yield Row(path, what, REFUSED, f"{what}: {skill}")


def _is_own_index(home: str, data: bytes) -> bool:
    """Tell whether hivepipe 1.0.0, which had no manifest, wrote this index."""
    path = database_path(home)
    if not path.exists():
        return False
    with listings(path) as store:
        return data == index_json(skill_statistics(store, local_day))


class _Skill(NamedTuple):
    total: ImportedSkill
    uses: list[SkillUse]


def _skill(name: str, entry: Any) -> _Skill | str:
    """Return one skill of skill-usage.json, parsed, or an error text if its entry is not valid."""
    if not isinstance(entry, dict):
        return "it is not an object"
    name = clean(name)[:CAP_NAME]
    uses = [use for each in _list(entry, "invocations") if (use := _use(name, each))]
    count = entry.get("count", len(uses))
    if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count < LARGEST_COUNT:
        return f"its count is {count!r}"[:80]
    count = max(count, len(uses))
    rate = entry.get("success_rate")
    good = sum(use.success for use in uses)
    if isinstance(rate, int | float) and math.isfinite(rate) and 0 <= rate <= 1:
        good = min(round(rate * count), count)
    else:
        good += count - len(uses)
    times = [use.time for use in uses]
    listed = [valid_id(each) for each in _list(entry, "sessions") if isinstance(each, str)]
    sessions = dict.fromkeys([*listed, *(use.session for use in uses)])
    total = ImportedSkill(
        skill=name,
        uses=count,
        successes=good,
        last_used=_time(entry.get("last_used")) or max(times, default=""),
        sessions=tuple(islice(filter(None, sessions), MOST_SESSIONS)),
        days=_days(entry.get("daily")),
    )
    return _Skill(total, uses)


def _use(skill: str, entry: Any) -> SkillUse | None:
    if not isinstance(entry, dict):
        return None
    session, context = entry.get("session_id"), entry.get("context")
    return SkillUse(
        skill=skill,
        time=_time(entry.get("timestamp")),
        session=valid_id(session) if isinstance(session, str) else "",
        arguments=clean(context)[:CAP_ARGUMENTS] if isinstance(context, str) else "",
        success=entry.get("success") is not False,
        is_imported=True,
    )


def _list(entry: dict[str, Any], name: str) -> list[Any]:
    found = entry.get(name)
    return found if isinstance(found, list) else []


def _time(value: Any) -> str:
    """Return a time in the store's format, or "" if it is invalid. A time without zone is local."""
    return utc_time(value, "") if isinstance(value, str) else ""


def _days(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        return {}
    good = {
        day: number
        for day, number in value.items()
        if type(number) is int and 0 < number < LARGEST_COUNT and _is_day(day)
    }
    return dict(sorted(good.items())[-MOST_DAYS:])


def _is_day(text: str) -> bool:
    try:
        return datetime.strptime(text, "%Y-%m-%d").strftime("%Y-%m-%d") == text  # noqa: DTZ007
    except ValueError:
        return False
