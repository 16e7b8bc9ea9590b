"""Where alerts go, if the user named a command or a webhook: told once, in a bounded time.

Either is a process that leads a group of its own, and the group is killed when the time is up: a
socket's timeout does not end a server that says a byte a second. Nothing of the command line and
of the address is in what went wrong, for both may hold a secret.

    python -I -m hivepipe.alert_outlets    posts what its stdin says
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import IO
from urllib.parse import urlsplit

from hivepipe import core_dumps
from hivepipe.redaction import redact_text
from hivepipe.web_address import is_local

LIMIT_SECS = 10
LOOK_EVERY_SECS = 0.02
ANSWER_BYTES = 1 << 16
WORDS_BYTES = 2000
WORDS_CHARACTERS = 200
_SCHEMES = ("http", "https")


def run(command: str, said: Mapping[str, str]) -> str:
    """Run the command, without a shell, the alert as JSON on its stdin; return what went wrong."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"the command cannot be read: {error}"
    if not words:
        return "the command is empty"
    return told(words, json.dumps(said))


def post(url: str, said: Mapping[str, object]) -> str:
    """Send JSON to an address of the user's; return what went wrong."""
    words = [sys.executable, "-I", "-m", "hivepipe.alert_outlets"]
    return told(words, json.dumps({"url": url, "said": said})).removeprefix("exit code 1: ")


def told(words: list[str], data: str) -> str:
    """Run a command, data on its stdin, for a bounded time; return what went wrong."""
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a byte that no argument may hold
        reason = error.strerror if isinstance(error, OSError) else "it holds a NUL"
        return f"the command cannot be run: {reason}"
    assert process.stdin is not None
    assert process.stderr is not None
    try:
        with suppress(BrokenPipeError), process.stdin as stdin:
            stdin.write(data.encode())
        last_words = _watch(process, process.stderr)
    finally:
        with suppress(ProcessLookupError):  # what it left behind, also after a good end
            os.killpg(process.pid, signal.SIGKILL)
        process.stderr.close()
        process.wait()
    if last_words is None:
        return f"not done within {LIMIT_SECS} s"
    said = redact_text(last_words.decode("utf-8", "replace"))[-WORDS_CHARACTERS:].strip()
    return f"exit code {process.returncode}: {said}" if process.returncode else ""


def _watch(process: subprocess.Popen[bytes], stderr: IO[bytes]) -> bytes | None:
    """Return the last words of a process that ends; None: it does not, in time."""
    os.set_blocking(stderr.fileno(), False)  # a child of its may hold it open for long
    last = b""
    deadline = time.monotonic() + LIMIT_SECS
    while time.monotonic() < deadline:
        is_over = process.poll() is not None
        chunk = stderr.read(1 << 16)
        last = (last + (chunk or b""))[-WORDS_BYTES:]
        if is_over:
            return last
        if not chunk:
            time.sleep(LOOK_EVERY_SECS)
    return None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A POST that is redirected would arrive as a GET, without the alert."""

    def redirect_request(self, *_: object) -> None:
        """Follow none: the answer counts as an error."""


def exchange(url: str, said: object, headers: Mapping[str, str]) -> tuple[str, bytes]:
    """POST JSON; return what went wrong, without a word of the address, and the answer."""
    all_headers = {"Content-Type": "application/json", **headers}
    data = json.dumps(said).encode()
    handlers = [_NoRedirect(), *([urllib.request.ProxyHandler({})] if is_local(url) else [])]
    try:
        if urlsplit(url).scheme not in _SCHEMES:
            return "this is no http or https address", b""
        request = urllib.request.Request(url, data, all_headers, method="POST")
        with urllib.request.build_opener(*handlers).open(request, timeout=LIMIT_SECS) as answer:
            return "", answer.read(ANSWER_BYTES)
    except urllib.error.HTTPError as error:
        with suppress(OSError, HTTPException):
            return f"HTTP {error.code}", error.read(ANSWER_BYTES)
        return f"HTTP {error.code}", b""
    except urllib.error.URLError as error:
        return getattr(error.reason, "strerror", None) or str(error.reason), b""
    except (OSError, ValueError, HTTPException) as error:
        return type(error).__name__, b""


if __name__ == "__main__":
    core_dumps.close_memory()
    asked = json.load(sys.stdin)
    sys.exit(exchange(asked["url"], asked["said"], {})[0] or None)
