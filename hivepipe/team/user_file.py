"""Files of a team in the user's configuration folder."""

from hivepipe.errors import TeamError
from hivepipe.home import make_folders, user_config_folder, write_small


def write_user_file(name: str, text: str) -> str:
    """Write a file and return its path. Raise TeamError if it cannot be written."""
    path = f"{user_config_folder()}/{name}"
    try:
        make_folders(user_config_folder())
        write_small(path, text)
    except OSError as error:
        raise TeamError(f"{path} cannot be written: {error.strerror}") from None
    return path
