"""Skill counts of a predecessor's file: totals by skill, and the uses that the file lists."""

import json
from _blake2 import blake2b
from collections.abc import Callable, Iterable
from operator import add

from hivepipe.db.database import Database, Row, new_values
from hivepipe.db.forget import is_forgotten
from hivepipe.redact import redact_text
from hivepipe.skills.statistics import ImportedSkill, SkillUse

KIND = "imported"


def add_skill(db: Database, skill: ImportedSkill, uses: Iterable[SkillUse]) -> None:
    """Add one skill from an imported file, within the caller's transaction.

    If a use of the skill is stored already, the file is a newer version of an imported file. Its
    totals include the stored totals, so the larger totals are kept. Otherwise the totals are added.
    """
    uses = [use for use in uses if not is_forgotten(db, use.session)]
    use_sql = "SELECT 1 FROM skill_uses WHERE job_id = :id"
    is_later = any(db.row(use_sql, {"id": _id(use)}) for use in uses)
    stored = {"skill": redact_text(skill.skill)}
    known = db.row("SELECT * FROM imported_skills WHERE skill = :skill", stored)
    merged = _merged(known, skill, is_later) if known else skill
    totals = {
        "uses": merged.uses,
        "successes": merged.successes,
        "last_used": merged.last_used,
        "days": json.dumps(merged.days),
    }
    replace = f"(skill) DO UPDATE SET {new_values(totals)}"
    db.insert("imported_skills", {"skill": skill.skill, **totals}, replace)
    for use in uses:
        _add_use(db, use)
    for session in skill.sessions:
        if not is_forgotten(db, session):
            db.insert("imported_skill_sessions", {"skill": skill.skill, "session_id": session})


def counts_as_own(db: Database, skills: list[tuple[ImportedSkill, list[SkillUse]]]) -> bool:
    """Tell whether hivepipe itself exported the file with these skills.

    It did if the store has all uses in the file and, for each skill, at least the file's total.
    """
    sql = """
        SELECT COUNT(*) AS n FROM skill_uses
        WHERE skill = :skill AND kind <> 'imported' AND created_at = :time
          AND COALESCE(session_id, '') = :session
    """
    count = "SELECT COUNT(*) AS n FROM skill_uses WHERE skill = :skill AND kind <> 'imported'"
    for total, uses in skills:
        row = db.row(count, {"skill": redact_text(total.skill)})
        if not uses or row is None or row["n"] < total.uses:
            return False
        for use in uses:
            named = {"skill": redact_text(use.skill), "time": use.time, "session": use.session}
            row = db.row(sql, named)
            if row is None or not row["n"]:
                return False
    return True


def _merged(known: Row, skill: ImportedSkill, is_later: bool) -> ImportedSkill:
    merge: Callable[[int, int], int] = max if is_later else add
    days = json.loads(known["days"])
    return skill._replace(
        uses=merge(known["uses"], skill.uses),
        successes=merge(known["successes"], skill.successes),
        last_used=max(known["last_used"], skill.last_used),
        days={**days, **{day: merge(days.get(day, 0), n) for day, n in skill.days.items()}},
    )


def _add_use(db: Database, use: SkillUse) -> None:
    row = {
        "session_id": use.session or None,
        "skill": use.skill,
        "kind": KIND,
        "arguments": use.arguments,
        "success": use.success,
        "created_at": use.time,
        "job_id": _id(use),
    }
    db.insert("skill_uses", row)


def _id(use: SkillUse) -> str:
    """Return an id made of the content of a use; equal uses have the same id."""
    text = json.dumps([use.skill, use.time, use.session, use.arguments, use.success])
    return blake2b(
        text.encode("utf-8", "replace"), digest_size=16, person=b"hivepipe-skill"
    ).hexdigest()
