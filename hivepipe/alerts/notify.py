"""Sends an alert to the user's command or webhook: one attempt, with a time limit.

The command and the request each run in a process group of their own, which is killed at the limit.
A socket timeout would not stop a server that sends a byte per second. Error texts contain neither
the command line nor the address, since both may contain a secret.

    python -I -m hivepipe.alerts.notify    reads a request from stdin and posts it
"""

import json
import shlex
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from urllib.parse import urlsplit

from hivepipe.files import core_dumps
from hivepipe.programs import module, running
from hivepipe.redact import redact_text
from hivepipe.text.urls import is_local

LIMIT_SECS = 10
ANSWER_BYTES = 1 << 16
WORDS_CHARACTERS = 200
_SCHEMES = ("http", "https")


def run(command: str, alert: Mapping[str, str]) -> str:
    """Run the command without a shell, with the alert as JSON on stdin; return an error or ""."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"the command cannot be read: {error}"
    if not words:
        return "the command is empty"
    return run_with_input(words, json.dumps(alert))


def post(url: str, data: Mapping[str, object]) -> str:
    """POST JSON to the user's webhook; return an error or ""."""
    words = module("hivepipe.alerts.notify")
    # The names of these keys are fixed: after an upgrade the child may be newer than this process
    return run_with_input(words, json.dumps({"url": url, "said": data})).removeprefix(
        "exit code 1: "
    )


def run_with_input(words: list[str], data: str) -> str:
    """Run a command with data on stdin and a time limit; return an error or ""."""
    deadline = time.monotonic() + LIMIT_SECS
    try:
        with running(words, data.encode(), has_output=False) as child:
            while not child.has_ended():
                if time.monotonic() > deadline:
                    return f"not done within {LIMIT_SECS} s"
            code = child.code
    except (OSError, ValueError) as error:  # ValueError: an argument contains a NUL byte
        reason = error.strerror if isinstance(error, OSError) else "an argument contains a NUL"
        return f"the command cannot be run: {reason}"
    last_text = redact_text(child.errors.decode("utf-8", "replace"))[-WORDS_CHARACTERS:].strip()
    return f"exit code {code}: {last_text}" if code else ""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a redirected POST would become a GET without the data.

    A redirect could also send the user's key to another server.
    """

    def redirect_request(self, *_: object) -> None:
        """Return no request, so that the redirect is an error."""


def opener(url: str) -> urllib.request.OpenerDirector:
    """Return an opener that follows no redirect, and uses no proxy for a server on this machine."""
    direct = [urllib.request.ProxyHandler({})] if is_local(url) else []
    return urllib.request.build_opener(_NoRedirect, *direct)


def exchange(url: str, content: object, headers: Mapping[str, str]) -> tuple[str, bytes]:
    """POST JSON; return an error or "", and the response body. No error contains the address."""
    all_headers = {"Content-Type": "application/json", **headers}
    data = json.dumps(content).encode()
    try:
        if urlsplit(url).scheme not in _SCHEMES:
            return "not an http or https address", b""
        request = urllib.request.Request(url, data, all_headers, method="POST")
        with opener(url).open(request, timeout=LIMIT_SECS) as answer:
            return "", answer.read(ANSWER_BYTES)
    except urllib.error.HTTPError as error:
        with suppress(OSError, HTTPException), error:
            return f"HTTP {error.code}", error.read(ANSWER_BYTES)
        return f"HTTP {error.code}", b""
    except urllib.error.URLError as error:
        return getattr(error.reason, "strerror", None) or str(error.reason), b""
    except (OSError, ValueError, HTTPException) as error:
        return type(error).__name__, b""


if __name__ == "__main__":
    core_dumps.close_memory()
    request = json.load(sys.stdin)
    sys.exit(exchange(request["url"], request["said"], {})[0] or None)
