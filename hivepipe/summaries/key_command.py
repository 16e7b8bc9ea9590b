"""The user's command that prints an API key; it is run once for each call."""

import shlex
import subprocess

from hivepipe.errors import CredentialsError
from hivepipe.programs import end_group
from hivepipe.settings import inherited

LIMIT_SECS = 10.0


def key_printed_by(command: str) -> str:
    """Return the key; raise CredentialsError, which contains none of the command's output."""
    try:
        process = subprocess.Popen(
            shlex.split(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=inherited(),
            start_new_session=True,
        )
    except (OSError, ValueError, IndexError) as error:
        # The text of an OSError names the program, which may be the key by mistake.
        reason = error.strerror if isinstance(error, OSError) else error
        raise CredentialsError(f"the command for the key does not start: {reason}") from None
    try:
        printed, _ = process.communicate(timeout=LIMIT_SECS)
    except subprocess.TimeoutExpired:
        message = f"the command for the key took longer than {LIMIT_SECS:.0f} s"
        raise CredentialsError(message) from None
    finally:
        end_group(process)
    key = printed.decode("utf-8", "replace").strip()
    if process.returncode or not is_key(key):
        why = f"exit code {process.returncode}" if process.returncode else "not a line of ASCII"
        raise CredentialsError(f"the command for the key did not print one: {why}")
    return key


def is_key(text: str) -> bool:
    """Tell whether a text can be a key: one line of printable ASCII."""
    return bool(text) and text.isascii() and text.isprintable()
