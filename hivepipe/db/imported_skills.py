"""Skill counts of a predecessor: its totals, and its listed uses."""

import json
from _blake2 import blake2b
from collections.abc import Iterable

from hivepipe.db.database import Database
from hivepipe.db.forget import is_forgotten
from hivepipe.skills.statistics import ImportedSkill, SkillUse

KIND = "imported"


def add_skill(db: Database, skill: ImportedSkill, uses: Iterable[SkillUse]) -> None:
    """Add one skill from an imported file, within the caller's transaction.

    If one of its uses is stored already, the file is a newer version of an imported one. Its totals
    include the earlier ones, so the larger totals are kept. Otherwise its totals are added.
    """
    uses = [use for use in uses if not is_forgotten(db, use.session)]
    is_later = any(_is_known(db, use) for use in uses)
    known = db.row("SELECT * FROM imported_skills WHERE skill = :skill", {"skill": skill.skill})
    merged = _merged(known, skill, is_later) if known else skill
    sql = """
        INSERT OR REPLACE INTO imported_skills (skill, uses, successes, last_used, days)
        VALUES (:skill, :uses, :successes, :last_used, :days)
    """
    parameters = {
        "skill": skill.skill,
        "uses": merged.uses,
        "successes": merged.successes,
        "last_used": merged.last_used,
        "days": json.dumps(merged.days),
    }
    db.execute(sql, parameters)
    for use in uses:
        _add_use(db, use)
    sql = """
        INSERT INTO imported_skill_sessions (skill, session_id) VALUES (:skill, :session)
        ON CONFLICT DO NOTHING
    """
    for session in skill.sessions:
        if not is_forgotten(db, session):
            db.execute(sql, {"skill": skill.skill, "session": session})


def counts_as_own(db: Database, skills: list[tuple[ImportedSkill, list[SkillUse]]]) -> bool:
    """Tell whether the file is our export: the store has all its uses, and at least as many."""
    sql = """
        SELECT COUNT(*) AS n FROM skill_uses
        WHERE skill = :skill AND kind <> 'imported' AND created_at = :time
          AND COALESCE(session_id, '') = :session
    """
    count = "SELECT COUNT(*) AS n FROM skill_uses WHERE skill = :skill AND kind <> 'imported'"
    for total, uses in skills:
        row = db.row(count, {"skill": total.skill})
        if not uses or row is None or row["n"] < total.uses:
            return False
        for use in uses:
            named = {"skill": use.skill, "time": use.time, "session": use.session}
            row = db.row(sql, named)
            if row is None or not row["n"]:
                return False
    return True


def _merged(known: object, skill: ImportedSkill, is_later: bool) -> ImportedSkill:
    old = ImportedSkill(
        skill.skill,
        known["uses"],  # type: ignore[index]
        known["successes"],  # type: ignore[index]
        known["last_used"],  # type: ignore[index]
        (),
        json.loads(known["days"]),  # type: ignore[index]
    )
    days = {**old.days}
    for day, number in skill.days.items():
        days[day] = max(days.get(day, 0), number) if is_later else days.get(day, 0) + number
    return skill._replace(
        uses=max(old.uses, skill.uses) if is_later else old.uses + skill.uses,
        successes=(
            max(old.successes, skill.successes) if is_later else old.successes + skill.successes
        ),
        last_used=max(old.last_used, skill.last_used),
        days=days,
    )


def _is_known(db: Database, use: SkillUse) -> bool:
    return db.row("SELECT 1 FROM skill_uses WHERE job_id = :id", {"id": _id(use)}) is not None


def _add_use(db: Database, use: SkillUse) -> None:
    sql = """
        INSERT INTO skill_uses (session_id, skill, kind, arguments, success, created_at, job_id)
        VALUES (:session, :skill, :kind, :arguments, :success, :time, :id)
        ON CONFLICT (job_id) DO NOTHING
    """
    parameters = {
        "session": use.session or None,
        "skill": use.skill,
        "kind": KIND,
        "arguments": use.arguments,
        "success": use.success,
        "time": use.time,
        "id": _id(use),
    }
    db.execute(sql, parameters)


def _id(use: SkillUse) -> str:
    """Return an id of the use's content; equal uses have the same id."""
    text = json.dumps([use.skill, use.time, use.session, use.arguments, use.success])
    return blake2b(
        text.encode("utf-8", "replace"), digest_size=16, person=b"hivepipe-skill"
    ).hexdigest()
