"""How commands print paths."""

import os

from hivepipe.home import real_path, user_folder


def short(path: str) -> str:
    """Return a path relative to the current folder or to ~, if it is below one of them."""
    here = real_path(".")
    if path.startswith(f"{here}/"):
        return os.path.relpath(path, here)
    user = user_folder()
    return f"~{path.removeprefix(user)}" if path.startswith(f"{user}/") else path
