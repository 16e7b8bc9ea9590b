"""Command `skills`: number, failures and success rate of the uses of each skill."""

from collections.abc import Mapping

import click

from hivepipe.cli.here import store_here
from hivepipe.cli.tables import Column, local_day, output_options, show_entries
from hivepipe.cli.team_choice import team_choice, team_options
from hivepipe.db.skills import skill_statistics
from hivepipe.reading.team.skills import TeamSkill, team_skills
from hivepipe.reading.team.source import Choice, opened
from hivepipe.skills.statistics import SkillStatistics


@click.command()
@click.option("--commands", is_flag=True, help="List typed commands that are not skills.")
@team_options
@output_options
def skills(commands: bool) -> None:
    """List the skills, most used first.

    Failed uses count; uses that the user interrupted do not. A skill that was only typed is a
    command, unless it belongs to a plugin.
    """
    wanted = team_choice()
    found = _statistics(wanted, are_skills=not commands)
    ranked = sorted(found.items(), key=lambda entry: -entry[1].count)
    entries = [_entry(name, skill) for name, skill in ranked]
    what = "command" if commands else "skill"
    columns: dict[str, Column] = {
        what: "name",
        "uses": lambda skill: f"{skill['count']:,}",
        "failures": lambda skill: f"{skill['failures']:,}",
        "success": lambda skill: f"{skill['success_rate']:.1%}",
        "sessions": lambda skill: f"{skill['session_count']:,}",
        "last": "last_used",
        **({"people": "people"} if wanted else {}),
    }
    without = "none" if commands else "none; --commands lists typed commands"
    show_entries(f"{what}s", entries, columns, without=without)


def _statistics(wanted: Choice | None, *, are_skills: bool) -> Mapping[str, SkillStatistics]:
    if wanted:
        with opened() as source:
            return team_skills(source, wanted, local_day, are_skills=are_skills)
    with store_here() as store:
        return skill_statistics(store, local_day, are_skills=are_skills)


def _entry(name: str, skill: SkillStatistics) -> dict[str, object]:
    return {
        "name": name,
        "count": skill.count,
        "failures": skill.count - skill.successes,
        "success_rate": skill.success_rate,
        "session_count": len(skill.sessions),
        "last_used": skill.last_used,
        "daily": dict(sorted(skill.daily.items())),
        **({"people": len(skill.people)} if isinstance(skill, TeamSkill) else {}),
    }
