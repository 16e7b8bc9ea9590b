"""The user's command that prints an API key. The command is run once for each call of a model."""

import shlex
import time

from hivepipe.errors import CredentialsError
from hivepipe.programs import running
from hivepipe.settings import inherited

LIMIT_SECS = 10.0
LONGEST_KEY = 16_000


def key_printed_by(command: str) -> str:
    """Return the key that a command prints. Raise CredentialsError, whose text omits the output."""
    deadline = time.monotonic() + LIMIT_SECS
    try:
        with running(shlex.split(command), env=inherited()) as child:
            while not child.has_ended() and len(child.output) <= LONGEST_KEY:
                if time.monotonic() > deadline:
                    message = f"the command for the key took longer than {LIMIT_SECS:.0f} s"
                    raise CredentialsError(message)
            code = child.code  # None if the command prints more than a key
    except (OSError, ValueError, IndexError) as error:
        # The text of an OSError names the program, which may be the key by mistake.
        reason = error.strerror if isinstance(error, OSError) else error
        raise CredentialsError(f"the command for the key does not start: {reason}") from None
    key = child.output.decode("utf-8", "replace").strip()
    if code or not is_key(key):
        why = f"exit code {code}" if code else "not a line of ASCII"
        raise CredentialsError(f"the command for the key did not print one: {why}")
    return key


def is_key(text: str) -> bool:
    """Tell whether a text can be a key: one line of printable ASCII."""
    return 0 < len(text) <= LONGEST_KEY and text.isascii() and text.isprintable()
