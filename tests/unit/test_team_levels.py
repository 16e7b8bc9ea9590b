"""The level at which a project is shared with a team."""

import pytest

from hivepipe.team.policy import shared_level

ORDER = ["nothing", "metadata", "prompts", "everything"]


@pytest.mark.parametrize("users", range(4))
@pytest.mark.parametrize("teams", range(4))
def test_the_stricter_level_applies(users: int, teams: int) -> None:
    level = shared_level("blue", {"*": ORDER[users]}, {"*": ORDER[teams]})
    assert level == ORDER[min(users, teams)]
