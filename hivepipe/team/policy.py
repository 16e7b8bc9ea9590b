"""The level at which a project is shared: the stricter of the user's and the team's level.

    nothing      no rows, only the ids of deleted rows
    metadata     times, states, counts, tokens, names of models, tools, skills and types of agents
    prompts      ... and prompts, titles, summaries, arguments of skills, names and errors of agents
    everything   ... and log lines and archived transcripts

A pattern is a glob over project names (`project_names`). The longest matching pattern wins; `*`
sets the level of all other projects.
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
    """Return the level of a name; raise TeamError if it is unknown."""
    if text not in LEVELS:
        raise TeamError(f"{text} is not one of {', '.join(LEVELS)}")
    return text


def level_of(project: str, policies: Policies) -> Level:
    fitting = [pattern for pattern in policies if fnmatchcase(project, pattern)]
    if not fitting:
        return DEFAULT
    return level_named(policies[max(fitting, key=lambda pattern: (len(pattern), pattern))])


def shared_level(project: str, users: Policies, teams: Policies) -> Level:
    """Return the stricter of the user's and the team's level for a project."""
    return min(level_of(project, users), level_of(project, teams), key=LEVELS.index)


@cache
def includes(level: str, needed: Level) -> bool:
    """Tell whether a level is `needed` or wider. Raise TeamError for an unknown level."""
    return LEVELS.index(level_named(level)) >= LEVELS.index(needed)
