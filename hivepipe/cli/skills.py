"""Command `skills`: number, failures and success rate of the uses of each skill."""

from collections.abc import Callable, Mapping

import click

from hivepipe.cli.tables import (
    json_option,
    local_day,
    show_json,
    show_table,
    shown_time,
    utc_option,
)
from hivepipe.cli.team_choice import choice, team_options
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.skills import skill_statistics
from hivepipe.home import locate
from hivepipe.reading.team.skills import TeamSkill, team_skills
from hivepipe.reading.team.source import Choice, opened
from hivepipe.skills.statistics import SkillStatistics


@click.command()
@click.option("--commands", is_flag=True, help="List typed commands that are not skills.")
@team_options
@json_option
@utc_option
def skills(commands: bool, of_team: bool, as_json: bool, utc: bool, **whose: str) -> None:
    """List the skills, most used first.

    Failed uses count; uses that the user interrupted do not.
    """
    wanted = choice(of_team=of_team, **whose)
    found = _found(wanted, lambda time: local_day(time, utc), are_skills=not commands)
    ranked = sorted(found.items(), key=lambda entry: -entry[1].count)
    if as_json:
        kind = "commands" if commands else "skills"
        show_json(**{kind: [_entry(name, skill) for name, skill in ranked]})
        return
    more = ("people",) if wanted else ()
    rows = [
        (
            name,
            f"{skill.count:,}",
            f"{skill.count - skill.successes:,}",
            f"{skill.success_rate:.1%}",
            f"{len(skill.sessions):,}",
            shown_time(skill.last_used, utc),
            *_people(skill).values(),
        )
        for name, skill in ranked
    ]
    what = "command" if commands else "skill"
    show_table((what, "uses", "failures", "success", "sessions", "last", *more), rows)


def _found(
    wanted: Choice | None, day_of: Callable[[str], str], *, are_skills: bool
) -> Mapping[str, SkillStatistics]:
    if wanted:
        with opened() as source:
            return team_skills(source, wanted, day_of, are_skills=are_skills)
    with listings(database_path(locate(".").home)) as store:
        return skill_statistics(store, day_of, are_skills=are_skills)


def _people(skill: SkillStatistics) -> dict[str, int]:
    """Return the number of people who used a skill of a team, or {} for this machine's skills."""
    return {"people": len(skill.people)} if isinstance(skill, TeamSkill) else {}


def _entry(name: str, skill: SkillStatistics) -> dict[str, object]:
    return {
        "name": name,
        "count": skill.count,
        "failures": skill.count - skill.successes,
        "success_rate": skill.success_rate,
        "session_count": len(skill.sessions),
        "last_used": skill.last_used,
        "daily": dict(sorted(skill.daily.items())),
        **_people(skill),
    }
