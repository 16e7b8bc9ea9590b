"""Where alerts go, if the user named a command or a webhook: told once, in a bounded time."""

import json
import shlex
import subprocess
import urllib.request
from collections.abc import Mapping
from urllib.parse import urlsplit

LIMIT_SECS = 10
_SCHEMES = ("http", "https")


def run(command: str, said: Mapping[str, str]) -> str:
    """Run the command, without a shell, the alert as JSON on its stdin; return what went wrong."""
    try:
        done = subprocess.run(
            shlex.split(command),
            input=json.dumps(said),
            capture_output=True,
            text=True,
            timeout=LIMIT_SECS,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return f"{type(error).__name__}: {error}"
    return f"exit code {done.returncode}: {done.stderr[-200:].strip()}" if done.returncode else ""


def post(url: str, said: Mapping[str, object]) -> str:
    """Send JSON to an address of the user's; return what went wrong."""
    if urlsplit(url).scheme not in _SCHEMES:
        return "this is no http or https address"
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(said).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=LIMIT_SECS):
            return ""
    except (OSError, ValueError) as error:  # URLError is an OSError
        return f"{type(error).__name__}: {error}"
