"""Ratings of memories are sent to a server that accepts only agent-swarm's form."""

import json
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from hivepipe.agents.memory_server import events_of
from hivepipe.db.database import Database
from hivepipe.db.tasks import add_task, assign_task
from tests.conftest import Home, Server
from tests.llm_server import SUMMARY, Handler, Provider, provider, success
from tests.summary_scene import CANARY, Scene

KEY = "the-key-of-the-swarm-0123456789"
TASK = "5f0c7f0e-3a52-4d0e-9c55-0d6a1f2be111"
SESSION = "codex-1"
KNOWN = ("parser", "lexer")


@pytest.fixture
def scene(private_home: Home, redis_server: Server) -> Iterator[Scene]:
    made = Scene(private_home, redis_server)
    yield made
    made.close()


@pytest.fixture
def llm() -> Iterator[Provider]:
    useful = [{"name": "parser", "useful": True}, {"name": "lexer", "useful": False}]
    with provider() as server:
        server.otherwise = success({**SUMMARY, "memories": useful})
        yield server


@pytest.fixture
def swarm() -> Iterator[Provider]:
    with provider() as server:
        server.otherwise = answer_strictly
        yield server


def answer_strictly(handler: Handler, known: tuple[str, ...] = KNOWN) -> None:
    """Answer as agent-swarm's server does."""
    headers = {name.lower(): value for name, value in handler.headers.items()}
    if headers.get("authorization") != f"Bearer {KEY}":
        return handler.send(401, b'{"error": "Unauthorized"}')
    if not headers.get("x-agent-id"):
        return handler.send(400, b'{"error": "Missing X-Agent-ID header"}')
    events = handler.body.get("events")
    if handler.path != "/api/memory/rate" or not isinstance(events, list) or not events:
        return handler.send(400, b'{"error": "events: Required"}')
    wrong = next((text for text in map(problem_of, events) if text), "")
    if wrong:
        return handler.send(400, json.dumps({"error": wrong}).encode())
    refused = [each["memoryId"] for each in events if each["memoryId"] not in known]
    rejected = [{"memoryId": id, "reason": "memory not found"} for id in refused]
    answer = {"applied": len(events) - len(rejected), "rejected": rejected}
    return handler.send(200, json.dumps(answer).encode())


def problem_of(event: dict[str, Any]) -> str:
    if not isinstance(event.get("memoryId"), str) or not event["memoryId"]:
        return "memoryId: Required"
    if type(event.get("signal")) not in (int, float) or not -1 <= event["signal"] <= 1:
        return "signal: must be a number from -1 to 1"
    if type(event.get("weight")) not in (int, float) or not 0 <= event["weight"] <= 1:
        return "weight: must be a number from 0 to 1"
    if event.get("source") not in ("llm", "explicit-self"):
        return "source: Invalid enum value"
    if "taskId" in event and str(uuid.UUID(event["taskId"])) != event["taskId"]:
        return "taskId: Invalid uuid"
    return (
        "" if set(event) <= {"memoryId", "signal", "weight", "source", "taskId"} else "unknown key"
    )


def summarise(scene: Scene, session: str = SESSION, **env: str) -> str:
    """Summarise a text with two memories; return the command's output."""
    text, memories = scene.home.root / "text", scene.home.root / "memories"
    text.write_text("Mend the parser.\n" * 100)
    memories.write_text("".join(json.dumps({"name": it, "text": "x"}) + "\n" for it in KNOWN))
    words = ("summaries", "run", session, "--file", str(text), "--memories", str(memories))
    return scene.command(*words, **env)


def alerts(scene: Scene) -> list[str]:
    shown = json.loads(scene.home.command("status", "--json", expect=None))
    return [each["text"] for each in shown["alerts"] if each["name"] == "memory_server"]


def give_task(scene: Scene, task: str, session: str) -> None:
    with closing(Database(scene.home.database)) as db, db.transaction():
        add_task(db, task, "Mend it.", "2026-11-21T00:00:00.000Z")
        assign_task(db, task, session, "2026-11-21T00:00:00.000Z", 1)


def test_ratings_are_sent_once_in_the_form_of_the_server(
    scene: Scene, llm: Provider, swarm: Provider
) -> None:
    scene.use(llm, memory_rating=True, memory_server=f"{swarm.url}/")
    scene.keep("HIVEPIPE_MEMORY_SERVER_KEY", KEY)
    for session, field in ((SESSION, {}), ("codex-2", {"taskId": TASK})):
        if field:
            give_task(scene, TASK, session)
        swarm.requests.clear()
        assert "memory server" not in summarise(scene, session)
        ((path, headers, body),) = swarm.requests
        assert path == "/api/memory/rate"
        assert {name.lower(): value for name, value in headers.items()}["x-agent-id"] == session
        one = {"weight": 0.8, "source": "llm", **field}
        assert body == {
            "events": [
                {"memoryId": "lexer", "signal": -1, **one},
                {"memoryId": "parser", "signal": 1, **one},
            ]
        }
    assert alerts(scene) == []
    assert "taskId" not in events_of({"lexer": True}, "T-88")[0], "the server takes only a UUID"


def test_a_refusal_is_reported_until_ratings_are_accepted(
    scene: Scene, llm: Provider, swarm: Provider
) -> None:
    scene.use(llm, memory_rating=True, memory_server=swarm.url)
    output = summarise(scene)
    reason = "HTTP 401: Unauthorized (no key was sent: `hivepipe credentials set "
    assert f"the memory server did not accept the ratings: {reason}" in output
    (text,) = alerts(scene)
    assert reason in text
    assert len(swarm.requests) == 1  # not sent again
    scene.keep("HIVEPIPE_MEMORY_SERVER_KEY", KEY + "x")
    summarise(scene)
    assert alerts(scene) == ["the memory server did not accept ratings: HTTP 401: Unauthorized"]
    scene.keep("HIVEPIPE_MEMORY_SERVER_KEY", KEY)
    swarm.otherwise = lambda handler: answer_strictly(handler, known=("lexer",))
    summarise(scene)
    (text,) = alerts(scene)
    assert text.endswith("1 of 2 ratings were refused: parser: memory not found")
    swarm.otherwise = answer_strictly
    summarise(scene)
    assert alerts(scene) == []
    assert len(scene.home.rows("SELECT * FROM memory_ratings")) == 2


def test_the_key_is_sent_only_to_the_users_own_address(
    scene: Scene, llm: Provider, swarm: Provider
) -> None:
    """A project that sets the environment does not get the key, and error texts do not show it."""
    scene.use(llm, memory_rating=True)
    scene.keep("HIVEPIPE_MEMORY_SERVER_KEY", KEY)
    assert "HTTP 401" in summarise(scene, HIVEPIPE_MEMORY_SERVER=swarm.url)
    ((_, headers, _),) = swarm.requests
    assert "authorization" not in {name.lower() for name in headers}
    scene.configure(openai_url=f"{llm.url}/v1", memory_rating=True, memory_server=swarm.url)
    swarm.otherwise = lambda handler: handler.send(
        400, json.dumps({"error": f"never heard of {KEY}"}).encode()
    )
    output = summarise(scene) + "".join(alerts(scene))
    assert "HTTP 400: never heard of " in output
    assert KEY not in output
    assert CANARY not in output
