"""Command `skills`: number, failures and success rate of the uses of each skill."""

import click

from hivepipe.cli.tables import json_option, local_day, moment, show_json, show_table, utc_option
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.skills import skill_statistics
from hivepipe.home import locate
from hivepipe.skills.statistics import SkillStatistics


@click.command()
@click.option("--commands", is_flag=True, help="List typed commands that are not skills.")
@json_option
@utc_option
def skills(commands: bool, as_json: bool, utc: bool) -> None:
    """List the skills, most used first.

    Failed uses count; uses that the user interrupted do not.
    """
    with listings(database_path(locate(".").home)) as store:
        found = skill_statistics(store, lambda time: local_day(time, utc), are_skills=not commands)
    ranked = sorted(found.items(), key=lambda entry: -entry[1].count)
    if as_json:
        kind = "commands" if commands else "skills"
        show_json(**{kind: [_entry(name, skill) for name, skill in ranked]})
        return
    rows = [
        (
            name,
            f"{skill.count:,}",
            f"{skill.count - skill.successes:,}",
            f"{skill.success_rate:.1%}",
            f"{len(skill.sessions):,}",
            moment(skill.last_used, utc),
        )
        for name, skill in ranked
    ]
    what = "command" if commands else "skill"
    show_table((what, "uses", "failures", "success", "sessions", "last"), rows)


def _entry(name: str, skill: SkillStatistics) -> dict[str, object]:
    return {
        "name": name,
        "count": skill.count,
        "failures": skill.count - skill.successes,
        "success_rate": skill.success_rate,
        "session_count": len(skill.sessions),
        "last_used": skill.last_used,
        "daily": dict(sorted(skill.daily.items())),
    }
