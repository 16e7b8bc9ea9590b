"""Files of a team in the user's configuration folder."""

from hivepipe.errors import TeamError, os_error_as
from hivepipe.home import make_folders, user_config_folder, write_small


def write_user_file(name: str, text: str) -> str:
    """Write a file of this folder; return its path. Raise TeamError if it cannot be written."""
    path = f"{user_config_folder()}/{name}"
    with os_error_as(TeamError, f"{path} cannot be written"):
        make_folders(user_config_folder())
        write_small(path, text)
    return path
