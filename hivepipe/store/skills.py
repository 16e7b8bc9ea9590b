"""Uses of skills and of typed commands, each once."""

from collections.abc import Iterator

from hivepipe.skills.statistics import SkillUse
from hivepipe.store.listings import Listings


def skill_uses(store: Listings) -> Iterator[SkillUse]:
    """Yield the uses, the oldest first.

    A typed command is a skill's if Claude has called one of that name, or if it is a plugin's.
    What was typed and then called in the same prompt was used once: as the call went.
    """
    sql = """
        SELECT use.*, use.kind = 'tool' OR use.skill LIKE '%:%' OR EXISTS (
          SELECT 1 FROM skill_uses AS other
          WHERE other.skill = use.skill AND other.kind = 'tool') AS is_skill
        FROM skill_uses AS use
        WHERE use.kind = 'tool' OR NOT EXISTS (
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
        )


def last_skill_use(store: Listings) -> int:
    """Return the number of the use that was written last; 0 if there is none."""
    (row,) = store.rows("SELECT MAX(id) AS last FROM skill_uses", {})
    return row["last"] or 0


def skill_uses_since(store: Listings, number: int) -> tuple[int, str]:
    """Return how many uses were written after this one, and when the oldest of them was."""
    sql = "SELECT COUNT(*) AS n, MIN(created_at) AS oldest FROM skill_uses WHERE id > :number"
    (row,) = store.rows(sql, {"number": number})
    return row["n"], row["oldest"] or ""
