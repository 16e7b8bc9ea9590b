"""Helpers for tests of `hivepipe web`: a client, and hostile texts in database and transcript."""

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from httpx2 import Response
from starlette.testclient import TestClient

from hivepipe.cli.main import main
from hivepipe.db.database import Database
from hivepipe.home import locate
from hivepipe.web.app import web_app
from hivepipe.web.authentication import form_token
from hivepipe.web.listening import listen
from hivepipe.web.uvicorn_parts import Config, Server
from tests.archive_scene import AGENT, SESSION, line
from tests.conftest import CLI, Home
from tests.store_scene import new_database

TOKEN = "a-token-of-the-test"
BASE = "http://127.0.0.1:9182"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>'\"{{7*7}}</title>"
LONG = "megabyte of words without any end " * 30_000
AT = "2026-11-21T10:00:01.000Z"


def client_of(project: Path | str) -> TestClient:
    """Return a client of the page of a project that has shown its token."""
    client = TestClient(web_app(locate(str(project)), TOKEN, is_local=True), base_url=BASE)
    client.get(f"/now?token={TOKEN}")
    return client


@contextmanager
def served(app_at: Callable[[str], Any]) -> Iterator[str]:
    """Serve the application for its own address on a free port of loopback."""
    listening = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    config = Config(app_at(url), lifespan="off", log_level="error", timeout_graceful_shutdown=1)
    server = Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield url
    finally:
        server.should_exit = True
        thread.join(60)  # closing its socket earlier would raise in the thread
        listening.close()


@contextmanager
def served_page(project: Path) -> Iterator[str]:
    """Serve the page in this process; yield its address with its token."""

    def app_at(_url: str) -> Any:
        return web_app(locate(str(project)), TOKEN, is_local=True)

    with served(app_at) as url:
        yield f"{url}/?token={TOKEN}"


@contextmanager
def page_process(home: Home, *words: str, **env: str) -> Iterator["subprocess.Popen[str]"]:
    """Run `hivepipe web` on a free port while the context lasts; its first line is the address."""
    process = subprocess.Popen(
        [*CLI, "web", "--port", "0", *words],
        env=home.env | env,
        cwd=home.project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def line_of(process: "subprocess.Popen[str]") -> str:
    """Return the next line that a process prints."""
    assert process.stdout
    return process.stdout.readline().strip()


def post(client: TestClient, path: str, **fields: Any) -> Response:
    return client.post(path, data={"token": form_token(TOKEN), **fields}, headers={"Origin": BASE})


def insert(db: Database, table: str, **row: Any) -> None:
    names = ", ".join(row)
    db.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{n}' for n in row)})", row)


def insert_usage(db: Database, **changed: Any) -> None:
    """Insert the usage of one message."""
    row = {"message_id": "m", "request_id": "r", "agent_id": "", "is_sidechain": 0, "is_replay": 0,
           "created_at": AT, "model": "claude-opus-4-5", "speed": "", "region": "", "input": 100,
           "output": 10, "cache_read": 0, "cache_write_5m": 0, "cache_write_1h": 0,
           "web_searches": 0}  # fmt: skip
    insert(db, "usage", **row | changed)


def record_hostile(home: Path) -> None:
    """Make a home with one session whose texts are all hostile."""
    of = {"session_id": SESSION}
    with closing(new_database(home / "hive.db")) as db:
        insert(db, "swarms", id="swarm", name="shop")
        insert(db, "sessions", id=SESSION, status="active", source="startup", model=HOSTILE,
               project=HOSTILE, objective=HOSTILE, created_at=AT, updated_at=AT)  # fmt: skip
        insert(db, "agents", id="a1", swarm_id="swarm", status="running", type=HOSTILE,
               name=HOSTILE, error=HOSTILE, created_at=AT, **of)  # fmt: skip
        insert(db, "prompts", prompt=HOSTILE, created_at=AT, **of)
        insert(db, "skill_uses", skill=HOSTILE, kind="tool", arguments=HOSTILE, success=0,
               created_at=AT, **of)  # fmt: skip
        insert_usage(db, input=1000, **of)


def call(number: int, name: str, id_: str, **arguments: object) -> bytes:
    """Return a tool call of Claude."""
    use = {"type": "tool_use", "id": id_, "name": name, "input": arguments}
    message = {
        "id": f"msg-{number}",
        "role": "assistant",
        "model": "claude-opus-4-5-20251101",
        "content": [use],
        "usage": {"input_tokens": 3, "output_tokens": number + 1},
    }
    return line(number, message=message)


def result(number: int, id_: str, said: str, *, failed: bool = False, agent: str = "") -> bytes:
    block = {"type": "tool_result", "tool_use_id": id_, "content": said, "is_error": failed}
    more = {"toolUseResult": {"agentId": agent}} if agent else {}
    return line(number, type="user", message={"role": "user", "content": [block]}, **more)


def prompt(number: int, said: str) -> bytes:
    return line(number, type="user", message={"role": "user", "content": said})


def archive_hostile_session(root: Path) -> None:
    """Archive a session with hostile texts below a user's folder."""
    folder = root / ".claude" / "projects" / "-home-ana-shop"
    agents = folder / SESSION / "subagents"
    agents.mkdir(parents=True)
    session = [
        prompt(1, "Mend the cart, please"),
        line(2, f"The cart has {HOSTILE} \x1b[31m red \u202e back \x00 null"),
        call(3, "Edit", "t1", file_path="/home/ana/shop/cart.py", old_string="one", new_string="2"),
        result(4, "t1", "The cart is changed"),
        call(5, "Bash", "t2", command=f"ls {HOSTILE}"),
        result(7, "t2", "no such cart", failed=True),
        call(8, "Agent", "t3", subagent_type="Explore", description="Look at the cart"),
        result(15, "t3", "looked", agent=AGENT),
        line(16, LONG),
        prompt(1430, "Thank you for the cart"),
        call(1431, "Read", "t4", file_path="/home/ana/shop/cart.py"),
    ]
    (folder / f"{SESSION}.jsonl").write_bytes(b"".join(session))
    mark = f'{{"agentId": "{AGENT}", "isSidechain": true, '.encode()
    of_agent = [call(9, "Grep", "t5", pattern="cart"), result(10, "t5", "3 carts")]
    path = agents / f"agent-{AGENT}.jsonl"
    path.write_bytes(b"".join(each.replace(b"{", mark, 1) for each in of_agent))
    path.with_suffix(".meta.json").write_text('{"agentType": "Explore"}')
    for words in (["follow", "/"], ["sweep"]):
        done = CliRunner().invoke(main, ["archive", *words])
        assert done.exit_code == 0, done.output
