"""What becomes of a session's job, for each way in which a provider can fail."""

import json
import socket
import time
from collections.abc import Iterator
from uuid import UUID

import psutil  # type: ignore[import-untyped]
import pytest

from tests import llm_server
from tests.conftest import Home, Server, until
from tests.llm_server import Answer, Handler, Provider, error, provider, success
from tests.summary_scene import CANARY, Scene, conversation, processes_with, said

WRONG = {"summary": "It went well, and there is nothing more to say of it."}
SLOW_DOWN = error(429, "rate_limit_error", "slow down", Retry_After="40")

# case -> answers, then what is in the row, and how often was asked; a wait in between: at least, at
# most so many seconds
CASES: dict[str, tuple[list[Answer], str, str, int, tuple[float, float] | None]] = {
    "success": ([], "llm", "", 1, None),
    "mended": ([success(WRONG)], "llm", "", 2, None),
    "never mended": ([success(WRONG), success(WRONG)], "plain", "openai: answer: ", 2, None),
    "429": ([SLOW_DOWN], "llm", "", 2, (40, 41)),
    "500": ([error(500, "api_error", "oops")], "llm", "", 2, (7, 23)),
    "quota": (
        [error(429, "insufficient_quota", "you exceeded your quota")],
        "plain",
        "openai: quota: ",
        1,
        None,
    ),
    "bad key": (
        [error(401, "invalid_api_key", f"bad key {CANARY}")],
        "plain",
        "openai: auth: ",
        1,
        None,
    ),
    "malformed": ([llm_server.raw(b"{")], "plain", "openai: answer: ", 1, None),
    "30 MB": ([llm_server.flood], "plain", "openai: too large: ", 1, None),
}
SESSIONS = {name: str(UUID(int=(n + 1) << 96 | n)) for n, name in enumerate(CASES)}


@pytest.fixture
def scene(private_home: Home, redis_server: Server) -> Iterator[Scene]:
    made = Scene(private_home, redis_server)
    yield made
    made.close()


@pytest.fixture
def llm() -> Iterator[Provider]:
    with provider() as server:
        yield server


def waits(scene: Scene) -> dict[str, float]:
    """Return for how long the jobs of sessions wait that are to be tried again."""
    found = {}
    for job, at in scene.redis.zscan_iter("rq:scheduled:llm"):
        description = scene.redis.hget(f"rq:job:{job.decode()}", "description")
        found[description.decode().split()[-1]] = at - time.time()
    return found


def asks(scene: Scene) -> list[psutil.Process]:
    """Return the processes that the worker started."""
    found: list[psutil.Process] = psutil.Process(scene.llm.pid).children(recursive=True)
    return found


def test_a_table_of_what_happens_to_each_job(scene: Scene, llm: Provider) -> None:
    scripts = {name: list(case[0]) for name, case in CASES.items()}
    asked = dict.fromkeys(CASES, 0)

    def by_case(handler: Handler) -> None:
        words = json.dumps(handler.body)
        (name,) = [name for name in CASES if f"<case {name}>" in words]
        asked[name] += 1
        (scripts[name].pop(0) if scripts[name] else success())(handler)

    llm.otherwise = by_case
    scene.use(llm, llm_daily_calls=100, llm_daily_tokens=10_000_000, llm_daily_usd=10)
    for name, session in SESSIONS.items():
        scene.write(session, conversation(session) + said(58, "user", f"<case {name}>", session))
        scene.end(session)
    scene.start()
    until(lambda: scene.hurry("slow") or len(waits(scene)) == 2, "429 and 500 do not wait")
    for name, (_, _, _, _, wait) in CASES.items():
        if wait:
            assert wait[0] - 35 < waits(scene)[SESSIONS[name][:8]] <= wait[1], name
    until(lambda: scene.executed() == len(CASES), "not all was executed")
    print(f"\n{'provider':<14}{'asked':>6}  {'summary':<8}why")
    for name, (_, kind, reason, requests, _) in CASES.items():
        (row,) = scene.summaries(SESSIONS[name])
        print(f"{name:<14}{asked[name]:>6}  {row['kind']:<8}{row['reason'][:70]}")
        assert (row["kind"], asked[name]) == (kind, requests), (name, row["reason"])
        assert row["reason"].startswith(reason), name
        assert bool(reason) == bool(row["reason"])
        assert CANARY not in row["reason"]
    assert scene.redis.zcard("rq:failed:llm") == 0
    calls = sum(asked.values())
    assert scene.spent()["today"]["calls"] == calls
    assert not [path for path, data in scene.everything().items() if CANARY.encode() in data]


def test_refused_then_back(scene: Scene, llm: Provider) -> None:
    """Nobody listens: it waits, asks nobody, costs nothing; somebody does: it is summarised."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    scene.configure(openai_url=f"http://127.0.0.1:{port}/v1")
    scene.keep("OPENAI_API_KEY")
    scene.command("summaries", "enable", "--yes")
    scene.start()
    scene.end()
    until(lambda: scene.hurry("slow") or len(waits(scene)) == 1, "it does not wait")
    assert "unreachable" in scene.llm.text
    for _ in range(3):
        scene.hurry()
        until(lambda: len(waits(scene)) == 1 or scene.summaries(), "lost")
    row = scene.until_summary()
    assert (row["kind"], row["reason"][:19]) == ("plain", "openai: unreachable")


def test_a_hung_call_is_killed_with_its_time(scene: Scene, llm: Provider) -> None:
    """The worker that does not fork goes on; of the process that asked nothing is left."""
    llm.otherwise = llm_server.hang
    scene.use(llm, llm_timeout=5)
    scene.start()
    scene.end()
    until(lambda: scene.hurry("slow") or asks(scene), "nobody asks")
    assert processes_with(CANARY) == set()
    until(lambda: scene.hurry("slow") or len(waits(scene)) == 1, "not given up")
    assert "timeout" in scene.llm.text
    assert asks(scene) == []
    assert scene.llm.is_running
    llm.otherwise = success()
    assert scene.until_summary()["kind"] in ("llm", "plain")
    assert scene.spent()["today"]["calls"] >= 2  # nobody said what the hung one used: its most


def test_killed_between_call_and_record_is_not_asked_again(scene: Scene, llm: Provider) -> None:
    called = []

    def answer(handler: Handler) -> None:
        called.append(handler.path)
        scene.llm.end(9)
        success()(handler)

    llm.otherwise = answer
    scene.use(llm)
    scene.start()
    scene.end()
    until(lambda: scene.hurry("slow") or called, "never asked")
    until(lambda: not scene.llm.is_running, "it lives")
    scene.llm.start()
    row = scene.until_summary()
    assert (row["kind"], row["reason"]) == (
        "plain",
        "it was asked before, and the process was killed",
    )
    assert len(called) == 1
    assert scene.spent()["today"]["calls"] == 2


def test_told_to_stop_in_the_middle(scene: Scene, llm: Provider) -> None:
    """The call ends with the worker, at once; the next worker asks again."""
    llm.script = [llm_server.hang]
    scene.use(llm)
    scene.start()
    scene.end()
    until(lambda: scene.hurry("slow") or llm.requests, "never asked")
    (child,) = asks(scene)
    assert scene.llm.end() == 0
    assert not child.is_running()
    scene.llm.start()
    row = scene.until_summary()
    assert (row["kind"], len(llm.requests)) == ("llm", 2)


def test_what_was_agreed_to_goes_with_the_home(scene: Scene, llm: Provider) -> None:
    scene.use(llm)
    folder = scene.home.root / "state" / "hivepipe" / "summaries"
    assert len(list(folder.iterdir())) == 1
    assert str(folder) in scene.command("what", "--json")
