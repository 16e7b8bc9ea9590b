"""Files of a team in the user's configuration folder."""

from hivepipe.errors import TeamError, os_error_as
from hivepipe.home import make_folders, user_config_folder, write_small


def write_user_file(name: str, text: str) -> str:
    """Write a file in the user's configuration folder; return its path, or raise TeamError."""
    path = f"{user_config_folder()}/{name}"
    with os_error_as(TeamError, f"{path} cannot be written"):
        make_folders(user_config_folder())
        write_small(path, text)
    return path
