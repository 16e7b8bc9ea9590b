"""How commands print paths."""

import os

from hivepipe.home import real_path, user_folder


def short(path: str) -> str:
    """Return a path as it is best read from here: relative, or from the home folder on."""
    here = real_path(".")
    if path.startswith(f"{here}/"):
        return os.path.relpath(path, here)
    user = user_folder()
    return f"~{path.removeprefix(user)}" if path.startswith(f"{user}/") else path
