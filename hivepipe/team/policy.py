"""What is shared of a project: the stricter of the user's and the team's level.

    nothing      no row
    metadata     times, states, counts, tokens, names of models, tools and skills
    prompts      ... and prompts, titles, summaries, names and errors of agents
    everything   ... and log lines and archived transcripts

A pattern is a glob over names of projects (`project_names`). The longest pattern counts; `*` is
the level of all others.
"""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal, get_args

from hivepipe.errors import TeamError

Level = Literal["nothing", "metadata", "prompts", "everything"]
LEVELS: tuple[Level, ...] = get_args(Level)
OTHERS = "*"
DEFAULT: Level = "metadata"

Policies = Mapping[str, str]  # pattern -> level


def level_named(text: str) -> Level:
    """Return a level; TeamError: there is none of this name."""
    if text not in LEVELS:
        raise TeamError(f"{text} is not one of {', '.join(LEVELS)}")
    return text


def level_of(project: str, policies: Policies) -> Level:
    """Return the level of a project by one side's policies."""
    fitting = [pattern for pattern in policies if fnmatchcase(project, pattern)]
    if not fitting:
        return DEFAULT
    return level_named(policies[max(fitting, key=lambda pattern: (len(pattern), pattern))])


def shared_level(project: str, users: Policies, teams: Policies) -> Level:
    """Return the stricter of the two levels."""
    return min(level_of(project, users), level_of(project, teams), key=LEVELS.index)


@cache
def includes(level: str, needed: Level) -> bool:
    """Tell whether a level shares what needs another one."""
    return LEVELS.index(level_named(level)) >= LEVELS.index(needed)
