"""A secret in every field of every event is finally in no file."""

import base64
import json
import re
import signal
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

from tests.conftest import Home, Process, Server, Writer, fire, is_drained, redis_log, until
from tests.payloads import ALL, POST_EDIT, SESSION_START, Payload, changed
from tests.rounds import ASKED_ROUNDS

SECRETS = {
    "anthropic": ("sk-ant-api03-", "Qz7Xk2Vb9Lm4Rt6Wp1Ns8Yc3Hd5Jf0GgTzKvBxEa"),
    "github": ("ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"),
}
# Fields that decide which jobs an event becomes: each gets the secret in an event of its own.
DECIDING = ("hook_event_name", "tool_name", "status", "expansion_type")
# How long a secret may stay in the append-only file while the writer runs.
TRANSIT_SECS = 60.0


def plant(value: Any, canary: Callable[[str], str], keep: tuple[str, ...], name: str = "") -> Any:
    """Put the canary into every text, at any depth."""
    if isinstance(value, dict):
        return {key: plant(inner, canary, keep, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [plant(inner, canary, keep, name) for inner in value]
    if isinstance(value, str) and name not in keep:
        return canary(value)
    return value


def variants(payload: Payload, secret: str) -> Iterator[Payload]:
    """Yield variants of the event: the secret replaces texts, is added to them, or is a field.

    The field decides what the hook does, such as the tool's name.
    """

    def instead(_text: str) -> str:
        return secret

    def within(text: str) -> str:
        return f"{text}/{secret}" if text.startswith("/") else f"{text} {secret}."

    ids = ("session_id", "prompt_id", "agent_id", "agentId", "tool_use_id")
    yield plant(payload, instead, DECIDING)
    yield plant(payload, within, DECIDING)
    # With valid ids, so that everything else reaches the tables.
    yield plant(payload, within, (*DECIDING, *ids))
    yield plant(payload, instead, (*DECIDING, *ids))
    if "tool_name" in payload:
        yield changed(payload, tool_name=secret)
    for key in ("status", "agentId"):
        if key in payload.get("tool_response", {}):
            yield changed(payload, tool_response={**payload["tool_response"], key: secret})
    if "expansion_type" in payload:
        yield changed(payload, expansion_type=secret)


def needles(secret: str, body: str) -> list[bytes]:
    """Return the secret and its halves (an SQLite page may split it), plain and in base64."""
    half = len(body) // 2
    parts = [secret.encode(), body[:half].encode(), body[half:].encode()]
    coded = []
    for part in parts:
        for shift in range(3):
            text = base64.b64encode(b"\0" * shift + part)
            coded.append(text[4:-4])  # the part that does not depend on adjacent bytes
    return [*parts, *coded]


def files_with(folder: Path, wanted: list[bytes]) -> dict[str, bytes]:
    """Return path -> excerpt of the files below a folder with a needle in the name or contents."""
    found = {}
    for path in folder.rglob("*"):
        try:
            data = path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:
            continue
        for text in (bytes(path), data, *unpacked(data)):
            for needle in wanted:
                at = text.find(needle)
                if at >= 0:
                    found[str(path)] = text[max(0, at - 60) : at + 60]
    return found


def unpacked(data: bytes) -> Iterator[bytes]:
    """Yield what RQ compressed."""
    for mark in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data):
        try:
            yield zlib.decompressobj().decompress(data[mark.start() :])
        except zlib.error:
            continue


def in_tables(home: Home, wanted: list[bytes]) -> list[str]:
    connection = sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)
    lines = list(connection.iterdump())
    connection.close()
    return [line for line in lines if any(needle in line.encode() for needle in wanted)]


def test_no_secret_stays_in_any_file(
    private_home: Home, new_server: Callable[[Home], Server], new_writer: Callable[[Home], Writer]
) -> None:
    """Users run at once, to save waiting: each kind of secret, with and without a project."""
    named = (True, False)
    users = list(product(SECRETS, named) if ASKED_ROUNDS else zip(SECRETS, named, strict=True))
    homes = [private_home.root / f"user{number}" for number in range(len(users))]
    for root in homes:
        root.mkdir(mode=0o700)
        Home(root).make()
    with ThreadPoolExecutor(len(users)) as pool:
        users_runs = [
            pool.submit(run_user, Home(root), new_server, new_writer, kind, project_named)
            for root, (kind, project_named) in zip(homes, users, strict=True)
        ]
    for run in users_runs:
        run.result()


def run_user(
    private_home: Home,
    new_server: Callable[[Home], Server],
    new_writer: Callable[[Home], Writer],
    kind: str,
    project_named: bool,
) -> None:
    """Fire every event with a secret of this kind in it, and search for it everywhere."""
    prefix, body = SECRETS[kind]
    secret = prefix + body
    wanted = needles(secret, body)
    env = private_home.with_env(INSTANCE_ID="instance-ana", CHECKPOINT_INTERVAL="0")
    if not project_named:  # then the event's cwd, with the secret in it, is the project
        del env["CLAUDE_PROJECT_DIR"]

    def fire_everything(events: list[Payload]) -> None:
        fire("SessionStart", SESSION_START, env)
        for event in events:
            fire(event["hook_event_name"], event, env)
        fire("PostToolUse", f'{{"{secret}": "{secret}", "cwd": "{secret}'.encode(), env)
        fire("PostToolUse", secret.encode(), env)

    planted = [event for payload in ALL.values() for event in variants(payload, secret)]
    assert all(secret in json.dumps(event) for event in planted)
    fire_everything(planted[::2])  # without Redis: through the spool
    assert any("spool" in path for path in files_with(private_home.root, wanted))
    server = new_server(private_home)
    fire_everything(planted[1::2])
    shown = files_with(private_home.root, wanted)
    assert any(path.endswith(".aof") for path in shown), shown
    with server.client() as client:
        assert any(
            secret.encode() in (client.hget(key, "data") or b"") for key in client.keys("rq:job:*")
        )

    writer, slow_worker = new_writer(private_home), Writer(private_home, "slow")
    writer.start()
    slow_worker.start()
    try:
        settle(private_home, server, writer, slow_worker, env, secret, wanted)
    finally:
        if slow_worker.is_running:
            slow_worker.end(signal.SIGKILL)

    assert files_with(private_home.root, wanted) == {}
    assert in_tables(private_home, wanted) == []
    with server.client() as client:
        dumped = [client.dump(key) or b"" for key in client.keys("*")]
    assert not [value for value in dumped if any(needle in value for needle in wanted)]


def settle(
    private_home: Home,
    server: Server,
    writer: Writer,
    slow_worker: Process,
    env: dict[str, str],
    secret: str,
    wanted: list[bytes],
) -> None:
    """Let the stack process all jobs, check the append-only file, and end the workers."""
    until(lambda: is_drained(private_home, server, writer), "not drained")
    assert private_home.count("agents") > 0
    assert private_home.count("prompts") > 0
    assert "REDACTED" in json.dumps(private_home.rows("SELECT * FROM prompts"))

    # The running writer rewrites the append-only file by itself.
    until(
        lambda: not any(needle in redis_log(private_home.path) for needle in wanted),
        "the secret is still in the append-only file",
        secs=TRANSIT_SECS,
    )
    fire("PostToolUse", changed(POST_EDIT, session_id=secret, cwd=secret), env)
    until(lambda: is_drained(private_home, server, writer), "not drained")
    assert slow_worker.end(signal.SIGTERM) == 0
    assert writer.end(signal.SIGTERM) == 0
