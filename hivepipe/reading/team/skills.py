"""The uses of skills in a team, without uses that were imported from a predecessor."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hivepipe.reading.team.source import CHOSEN, Choice, Source, local_day, valid_time
from hivepipe.skills.statistics import SkillStatistics

_USES = f"""
    SELECT use.skill, use.home, h.person, COALESCE(use.session_id, '') AS session,
      substr(use.created_at, 1, 13) AS hour, MAX(use.created_at) AS last,
      MIN(use.created_at) AS first, COUNT(*) AS uses,
      COUNT(*) FILTER (WHERE use.success <> 0) AS successes
    FROM hivepipe.skill_uses use JOIN hivepipe.v_homes h ON h.home = use.home
      LEFT JOIN hivepipe.sessions s ON s.home = use.home AND s.key = use.session_id
    WHERE {CHOSEN} AND use.skill IS NOT NULL AND use.created_at >= %(since)s::text
      AND (%(until)s::text = '' OR use.created_at < %(until)s::text)
      AND (use.kind = 'tool' OR (use.kind <> 'imported' AND NOT EXISTS (
        SELECT FROM hivepipe.skill_uses other WHERE other.home = use.home
          AND other.skill = use.skill AND other.kind = 'tool'
          AND other.session_id = use.session_id AND other.prompt_id = use.prompt_id)))
      AND (use.kind = 'tool' OR (use.kind <> 'own_command' AND use.skill LIKE '%%:%%') OR EXISTS (
        SELECT FROM hivepipe.skill_uses other WHERE other.home = use.home
          AND other.skill = use.skill AND other.kind IN ('tool', 'imported'))) = %(are_skills)s
    GROUP BY use.skill, use.home, h.person, session, hour,
      substr(use.created_at, 14, 2) < '15', substr(use.created_at, 14, 2) < '30',
      substr(use.created_at, 14, 2) < '45'
    ORDER BY last
"""


@dataclass(slots=True)
class TeamSkill(SkillStatistics):
    """The statistics of one skill over all members; keys of `sessions` are `<home>/<session>`."""

    people: set[str] = field(default_factory=set)


def team_skills(
    source: Source,
    choice: Choice,
    day_of: Callable[[str], str] = local_day,
    *,
    are_skills: bool = True,
) -> dict[str, TeamSkill]:
    """Return the statistics by skill; with `are_skills=False`, by typed command."""
    skills: dict[str, TeamSkill] = {}
    for row in source.rows(_USES, choice.values() | {"are_skills": are_skills}):
        skill = skills.setdefault(row["skill"], TeamSkill())
        skill.count += row["uses"]
        skill.successes += row["successes"]
        skill.daily[day_of(valid_time(row["first"]))] += row["uses"]
        skill.last_used = max(skill.last_used, valid_time(row["last"]))
        skill.sessions[f"{row['home']}/{row['session']}"] = row["last"]
        skill.people.add(row["person"])
    return dict(sorted(skills.items()))
