"""The name of a project in a team."""

import pytest

from hivepipe.team.project_names import project_name


@pytest.mark.parametrize("folder", ["", "shop", "<script>/x", "../shop", "C:\\shop"])
def test_a_folder_that_is_no_absolute_path_has_no_name(folder: str) -> None:
    assert project_name(folder) == ""
