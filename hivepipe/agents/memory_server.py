"""Sends ratings of memories to the configured server, in agent-swarm's format.

    POST <memory_server>/api/memory/rate
    Authorization: Bearer <HIVEPIPE_MEMORY_SERVER_KEY of credentials.env>
    X-Agent-ID: <the session's profile, or else its id>
    {"events": [{"memoryId", "signal": 1 or -1, "weight", "source": "llm", "taskId"?}]}

The key is sent only to the address in the user's own config.toml. A refusal is shown as an alert
until the server accepts a rating. The database keeps all ratings, and none is sent twice.

    python -I -m hivepipe.agents.memory_server    reads a request from stdin and posts it
"""

import json
import os
import sys
import textwrap
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from hivepipe.alerts import notify
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.memory_ratings import LLM, rated_by
from hivepipe.errors import CredentialsError, StoreError
from hivepipe.files import core_dumps
from hivepipe.home import read_small, write_small
from hivepipe.programs import module
from hivepipe.settings import of_files, variable
from hivepipe.summaries.providers import MEMORY_SERVER_KEY, read_credentials
from hivepipe.transcripts.lines import read_object

WEIGHT = 0.8  # weight of a rating by a language model in agent-swarm, whose server requires one
_LONGEST_REASON = 160
_ADDRESS = "HIVEPIPE_MEMORY_SERVER"


def send_ratings(home: str, session: str, useful: Mapping[str, bool]) -> str:
    """Send the ratings of a session if a server is configured; return an error or ""."""
    server = (variable(_ADDRESS) or "").rstrip("/")
    if not server or not useful:
        return ""
    try:
        key = read_credentials().get(MEMORY_SERVER_KEY, "")
        with listings(database_path(home)) as store:
            agent, task = rated_by(store, session)
        problem = _send(server, key, agent, events_of(useful, task))
    except (CredentialsError, StoreError) as error:
        problem = str(error)
    _remember(home, problem)
    return problem


def trouble(home: str) -> str:
    """Return why the server refused the last ratings, or ""; "" also without a server."""
    return read_small(_problem_path(home)).strip() if variable(_ADDRESS) else ""


def events_of(useful: Mapping[str, bool], task: str) -> list[dict[str, object]]:
    """Return the `events` of a request. The events have no `taskId` if `task` is not a UUID."""
    of_task = {"taskId": task} if _is_uuid(task) else {}
    return [
        {
            "memoryId": name,
            "signal": 1 if of_use else -1,
            "weight": WEIGHT,
            "source": LLM,
            **of_task,
        }
        for name, of_use in sorted(useful.items())
    ]


def _send(server: str, key: str, agent: str, events: list[dict[str, object]]) -> str:
    is_the_users = (of_files(_ADDRESS) or "").rstrip("/") == server
    headers = {"X-Agent-ID": agent}
    if key and is_the_users:
        headers["Authorization"] = f"Bearer {key}"
    request = {"url": f"{server}/api/memory/rate", "said": {"events": events}, "headers": headers}
    words = module("hivepipe.agents.memory_server")
    problem = notify.run_with_input(words, json.dumps(request)).removeprefix("exit code 1: ")
    if problem.startswith("HTTP 401") and "Authorization" not in headers:
        problem += f" (no key was sent: `hivepipe credentials set {MEMORY_SERVER_KEY}`)"
    return problem.replace(key, "***REDACTED***") if key else problem


def _remember(home: str, problem: str) -> None:
    path = _problem_path(home)
    with suppress(OSError):
        if problem:
            write_small(path, f"{problem}\n")
        elif os.path.exists(path):
            os.unlink(path)


def _problem_path(home: str) -> str:
    return f"{home}/memory-server"


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return len(text) == len(str(UUID(int=0)))


def _post(request: dict[str, Any]) -> str:
    """Send a request. Return why it failed or why the server refused ratings, or ""."""
    problem, answer = notify.exchange(request["url"], request["said"], request["headers"])
    fields = read_object(answer) or {}
    if problem:
        return _short(f"{problem}: {fields['error']}") if "error" in fields else problem
    refused = fields.get("rejected")
    if not isinstance(refused, list) or not refused:
        return ""
    first = refused[0] if isinstance(refused[0], dict) else {}
    number = f"{len(refused)} of {len(request['said']['events'])} ratings were refused"
    return _short(f"{number}: {first.get('memoryId')}: {first.get('reason')}")


def _short(text: str) -> str:
    return textwrap.shorten(text, _LONGEST_REASON, placeholder=" ...")


if __name__ == "__main__":
    core_dumps.close_memory()
    sys.exit(_post(json.load(sys.stdin)) or None)
