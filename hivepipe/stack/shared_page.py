"""The web page that runs with a stack: one for all stacks of the user, at a permanent address.

<state>/hivepipe/web.lock     locked by the process that serves the page
<state>/hivepipe/web.json     its address and token, so that bookmarks and cookies stay valid
"""

import os
from importlib.util import find_spec

from hivepipe.errors import LockHeldError
from hivepipe.files.typed_file import read_object
from hivepipe.home import state_folder
from hivepipe.settings import DEFAULTS, of_files
from hivepipe.stack.lock import acquire_lock

PROGRAM = "web"
FILES = (f"{PROGRAM}.lock", f"{PROGRAM}.json")
NEEDED = ("starlette", "uvicorn", "jinja2", "a2wsgi", "rq_dashboard", "prometheus_client", "six")


def default_port() -> int:
    return int(of_files("HIVEPIPE_WEB_PORT") or DEFAULTS["HIVEPIPE_WEB_PORT"])


def is_installed() -> bool:
    return all(find_spec(name) for name in NEEDED)


def is_enabled() -> bool:
    return of_files("HIVEPIPE_WEB") == "true"


def lock_path() -> str:
    return f"{state_folder()}/{FILES[0]}"


def record_path() -> str:
    return f"{state_folder()}/{FILES[1]}"


def record() -> dict[str, str]:
    """Return `address` and `token` of the most recently served page, or {}."""
    return read_object(record_path())


def shared_address() -> str:
    """Return the address of the web page with its token, or "" if the page does not run."""
    try:
        os.close(acquire_lock(lock_path(), 0))
    except LockHeldError:
        return str(record().get("address", ""))
    except OSError:  # the state folder does not exist
        pass
    return ""
