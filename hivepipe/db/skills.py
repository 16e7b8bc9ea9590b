"""Uses of skills and of typed commands, without duplicates."""

import json
from collections.abc import Callable, Iterator

from hivepipe.db.listings import Listings
from hivepipe.skills.statistics import ImportedSkill, SkillStatistics, SkillUse, statistics


def skill_uses(store: Listings) -> Iterator[SkillUse]:
    """Yield the stored uses of skills, oldest first.

    A typed command counts as a skill if Claude has called a skill of that name, or if it belongs to
    a plugin. A skill that is typed and then called in the same prompt is one use, with the result
    of Claude's call.
    """
    sql = """
        SELECT use.*, use.kind IN ('tool', 'imported')
          OR (use.kind <> 'own_command' AND use.skill LIKE '%:%') OR EXISTS (
          SELECT 1 FROM skill_uses AS other
          WHERE other.skill = use.skill AND other.kind IN ('tool', 'imported')) AS is_skill
        FROM skill_uses AS use
        WHERE use.kind IN ('tool', 'imported') OR NOT EXISTS (
          SELECT 1 FROM skill_uses AS other
          WHERE other.skill = use.skill AND other.kind = 'tool'
            AND other.session_id = use.session_id AND other.prompt_id = use.prompt_id)
        ORDER BY use.created_at, use.id
    """
    for row in store.each(sql, {}):
        yield SkillUse(
            skill=row["skill"],
            time=row["created_at"],
            session=row["session_id"] or "",
            arguments=row["arguments"] or "",
            success=bool(row["success"]),
            is_skill=bool(row["is_skill"]),
            is_imported=row["kind"] == "imported",
        )


def imported_skills(store: Listings) -> Iterator[ImportedSkill]:
    """Yield each skill's totals that were imported from a predecessor."""
    sessions: dict[str, list[str]] = {}
    for row in store.each("SELECT * FROM imported_skill_sessions ORDER BY rowid", {}):
        sessions.setdefault(row["skill"], []).append(row["session_id"])
    for row in store.each("SELECT * FROM imported_skills ORDER BY skill", {}):
        yield ImportedSkill(
            skill=row["skill"],
            uses=row["uses"],
            successes=row["successes"],
            last_used=row["last_used"],
            sessions=tuple(sessions.get(row["skill"], ())),
            days=json.loads(row["days"]),
        )


def skill_statistics(
    store: Listings, day_of: Callable[[str], str], *, are_skills: bool = True
) -> dict[str, SkillStatistics]:
    """Return statistics of the uses of skills or, with `are_skills=False`, of commands."""
    uses = (use for use in skill_uses(store) if use.is_skill is are_skills)
    return statistics(uses, day_of, imported_skills(store) if are_skills else ())


def last_skill_use(store: Listings) -> int:
    """Return the id of the last stored use, or 0."""
    (row,) = store.rows("SELECT MAX(id) AS last FROM skill_uses", {})
    return row["last"] or 0


def skill_uses_since(store: Listings, number: int) -> tuple[int, str]:
    """Return the number of uses with an id above `number`, and the time of the oldest of them."""
    sql = "SELECT COUNT(*) AS n, MIN(created_at) AS oldest FROM skill_uses WHERE id > :number"
    (row,) = store.rows(sql, {"number": number})
    return row["n"], row["oldest"] or ""
