"""The user's command that prints an API key; it is run once for each call."""

import os
import select
import shlex
import subprocess
import time

from hivepipe.errors import CredentialsError
from hivepipe.programs import end_group
from hivepipe.settings import inherited

LIMIT_SECS = 10.0
LONGEST_KEY = 16_000


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
        printed = _printed_by(process)
        code = process.poll()  # None if it prints more than a key
    except subprocess.TimeoutExpired:
        message = f"the command for the key took longer than {LIMIT_SECS:.0f} s"
        raise CredentialsError(message) from None
    finally:
        end_group(process)
    key = printed.decode("utf-8", "replace").strip()
    if code or not is_key(key):
        why = f"exit code {code}" if code else "not a line of ASCII"
        raise CredentialsError(f"the command for the key did not print one: {why}")
    return key


def _printed_by(process: "subprocess.Popen[bytes]") -> bytes:
    """Return the output, or its beginning if it is too long for a key. Raises TimeoutExpired."""
    assert process.stdout is not None
    output, until = process.stdout.fileno(), time.monotonic() + LIMIT_SECS
    poll = select.poll()
    poll.register(output, select.POLLIN)
    printed = b""
    while len(printed) <= LONGEST_KEY:
        if not poll.poll(max(until - time.monotonic(), 0) * 1000):
            raise subprocess.TimeoutExpired(process.args, LIMIT_SECS)
        part = os.read(output, LONGEST_KEY)
        if not part:
            process.wait(max(until - time.monotonic(), 0))
            break
        printed += part
    return printed


def is_key(text: str) -> bool:
    """Tell whether a text can be a key: one line of printable ASCII."""
    return 0 < len(text) <= LONGEST_KEY and text.isascii() and text.isprintable()
