"""Refuse to run as root in the home of another user: that user could not use root's files."""

from hivepipe.errors import RegistrationError
from hivepipe.files.owner import user_name
from hivepipe.home import owner_over_root


def refuse_root(home: str) -> None:
    """Raise RegistrationError if root would leave files in another user's home."""
    owner = owner_over_root(home)
    if owner:
        name = user_name(owner)
        raise RegistrationError(
            f"you are root, but {home} is in a folder of {name}, who cannot use files that root "
            f"makes there. Run the command as {name} (`sudo -u {name} hivepipe ...`), or give root "
            "a home of its own (`hivepipe init --user`, HIVEPIPE_HOME)"
        )
