"""The outcome of a session's summary job for each way in which a provider can fail."""

import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from uuid import UUID

import psutil  # type: ignore[import-untyped]
import pytest

from tests import llm_server
from tests.conftest import Home, Server, until
from tests.llm_server import Answer, Handler, Provider, error, success
from tests.outcome import outcome_of
from tests.rounds import ASKED_ROUNDS
from tests.summary_scene import CANARY, Scene, conversation, message_line, processes_with

# The key in the environment of workers; other tests look for processes with CANARY there.
IN_ENV = "sk-canary-" + "Xk4" * 16
WRONG = {"summary": "It went well, and there is nothing more to say of it."}
SLOW_DOWN = error(429, "rate_limit_error", "slow down", Retry_After="40")


def quota_exceeded(handler: Handler) -> None:
    """Report an exhausted quota in the provider's own form."""
    if llm_server.is_anthropic(handler):
        error(400, "invalid_request_error", "Your credit balance is too low")(handler)
    else:
        error(429, "insufficient_quota", "you exceeded your quota")(handler)


# case -> answers, then the kind and the reason in the row, the number of requests, and the wait
# before the retry: at least and at most this many seconds
CASES: dict[str, tuple[list[Answer], str, str, int, tuple[float, float] | None]] = {
    "success": ([], "llm", "", 1, None),
    "mended": ([success(WRONG)], "llm", "", 2, None),
    "never mended": ([success(WRONG), success(WRONG)], "plain", "answer: ", 2, None),
    "429": ([SLOW_DOWN], "llm", "", 2, (40, 41)),
    "500": ([error(500, "api_error", "oops")], "llm", "", 2, (7, 23)),
    "quota": ([quota_exceeded], "plain", "quota: ", 1, None),
    "bad key": ([error(401, "invalid_api_key", f"bad key {IN_ENV}")], "plain", "auth: ", 1, None),
    "malformed": ([llm_server.raw(b"{")], "plain", "answer: ", 1, None),
    "30 MB": ([llm_server.flood], "plain", "too large: ", 1, None),
}
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
# Each case takes two seconds of CPU time. One of each outcome runs; HIVEPIPE_TEST_ROUNDS runs all.
# tests/unit/test_llm_protocols.py has every failure in both protocols, without a job.
OUTCOMES = {"openai": ("never mended", "429", "500", "bad key"), "anthropic": ("quota",)}
SESSIONS = {
    (kind, name): str(UUID(int=((k << 8) + n + 1) << 96 | n))
    for k, kind in enumerate(KEYS)
    for n, name in enumerate(CASES)
    if ASKED_ROUNDS or name in OUTCOMES[kind]
}


@pytest.fixture
def scene(private_home: Home, redis_server: Server) -> Iterator[Scene]:
    made = Scene(private_home, redis_server)
    yield made
    made.close()


def retry_waits(scene: Scene) -> dict[str, float]:
    """Return how many seconds each job waits until its retry, by session."""
    found = {}
    for job, at in scene.redis.zscan_iter("rq:scheduled:llm"):
        description = scene.redis.hget(f"rq:job:{job.decode()}", "description")
        found[description.decode().split()[-1]] = at - time.time()
    return found


def calling_processes(scene: Scene) -> list[psutil.Process]:
    """Return the processes that the worker started."""
    found: list[psutil.Process] = psutil.Process(scene.llm.pid).children(recursive=True)
    return found


@pytest.fixture
def scenes(
    private_home: Home, new_server: Callable[[Home], Server], llm: Provider
) -> Iterator[dict[str, Scene]]:
    """A stack per provider; the key of each is only in the environment of its worker."""
    made = {}
    for kind, key in KEYS.items():
        home = private_home.another(f".hive-{kind}")
        if kind == "anthropic":
            home.env["EXECUTE_ASKER"] = "1"  # The process of each provider is tested once.
        made[kind] = Scene(home, new_server(home), **{key: IN_ENV})
    # The slow worker reads this too: with summaries off it would serve the queue llm until the
    # llm worker runs.
    made["openai"].configure(
        summaries=True,
        openai_url=f"{llm.url}/v1",
        anthropic_url=llm.url,
        llm_daily_calls=100,
        llm_daily_tokens=10_000_000,
        llm_daily_usd=10,
    )
    yield made
    for scene in made.values():
        scene.close()


@pytest.mark.long
def test_each_failure_has_its_outcome(scenes: dict[str, Scene], llm: Provider) -> None:
    scripts = {(kind, name): list(CASES[name][0]) for kind, name in SESSIONS}
    asked = dict.fromkeys(SESSIONS, 0)

    def by_case(handler: Handler) -> None:
        words = json.dumps(handler.body)
        (case,) = [case for case in SESSIONS if f"<case {' '.join(case)}>" in words]
        asked[case] += 1
        assert llm_server.is_anthropic(handler) == (case[0] == "anthropic")
        (scripts[case].pop(0) if scripts[case] else success())(handler)

    llm.otherwise = by_case
    for case, session in SESSIONS.items():
        scene = scenes[case[0]]
        words = conversation(session) + message_line(
            58, "user", f"<case {' '.join(case)}>", session
        )
        scene.write(session, words)
        scene.end(session)
    for scene in scenes.values():
        scene.start()

    waited: dict[str, float] = {}

    def all_waited() -> bool:
        for scene in scenes.values():
            scene.make_due("slow")
            waited.update(
                {job: secs for job, secs in retry_waits(scene).items() if job not in waited}
            )
        return len(waited) == sum(CASES[name][4] is not None for _, name in SESSIONS)

    until(all_waited, "429 and 500 do not wait")
    for case, session in SESSIONS.items():
        wait = CASES[case[1]][4]
        assert (session[:8] in waited) == (wait is not None), case
        if wait:
            assert wait[0] - 35 < waited[session[:8]] <= wait[1], case
    until(
        lambda: sum(scene.executed() for scene in scenes.values()) == len(SESSIONS),
        "not all jobs were executed",
    )
    print(f"\n{'provider':<10} {'answers':<14}{'asked':>6}  {'summary':<8}why")
    for case, session in SESSIONS.items():
        _, kind, reason, requests, _ = CASES[case[1]]
        (row,) = scenes[case[0]].summaries(session)
        print(f"{case[0]:<10} {case[1]:<14}{asked[case]:>6}  {row['kind']:<8}{row['reason'][:70]}")
        assert (row["kind"], asked[case]) == (kind, requests), (case, row["reason"])
        assert row["reason"].startswith(f"{case[0]}: {reason}" if reason else ""), case
        assert bool(reason) == bool(row["reason"])
        assert IN_ENV not in row["reason"]
    for scene in scenes.values():
        assert scene.redis.zcard("rq:failed:llm") == 0
    assert scene.spent()["today"]["calls"] == sum(asked.values())
    assert not [path for path, data in scene.everything().items() if IN_ENV.encode() in data]


def test_a_provider_that_is_down_then_hangs_then_answers(scene: Scene, llm: Provider) -> None:
    """The job waits for a retry, the worker continues, and changed settings apply at once."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    scene.configure(openai_url=f"http://127.0.0.1:{port}/v1")
    scene.keep("OPENAI_API_KEY")
    scene.command("summaries", "enable", "--yes")
    scene.start()
    scene.end()
    until(lambda: scene.make_due("slow") or len(retry_waits(scene)) == 1, "no retry is scheduled")
    assert "unreachable" in scene.llm.text
    assert scene.spent()["today"]["calls"] <= 1

    llm.otherwise = llm_server.hang
    scene.use(llm, llm_timeout=3)
    scene.make_due()
    until(lambda: calling_processes(scene), "no call is running")
    assert processes_with(CANARY) == set()
    until(lambda: len(retry_waits(scene)) == 1, "not given up")
    assert "timeout" in scene.llm.text
    assert calling_processes(scene) == []
    assert scene.llm.is_running
    # the usage of a call without an answer is unknown, so its maximum counts
    assert scene.spent()["today"]["calls"] >= 2

    llm.otherwise = success()
    scene.use(llm)
    assert scene.wait_for_summary()["kind"] == "llm"


def test_a_call_of_a_killed_worker_is_not_repeated(scene: Scene, llm: Provider) -> None:
    called = []

    def answer(handler: Handler) -> None:
        called.append(handler.path)
        os.kill(scene.llm.pid, signal.SIGKILL)
        success()(handler)

    llm.otherwise = answer
    scene.use(llm)
    scene.start()
    scene.end()
    until(lambda: scene.make_due("slow") or called, "no request came")
    until(lambda: not scene.llm.is_running, "it still runs")
    scene.llm.start()
    row = scene.wait_for_summary()
    assert (row["kind"], row["reason"]) == (
        "plain",
        "the model was asked before, and that process was killed",
    )
    assert len(called) == 1
    assert scene.spent()["today"]["calls"] == 2


KILLED_WITH_THE_ANSWER = """
import os, sys
from hivepipe.config.config_file import load_and_use
from hivepipe.operations.summariser import Summariser, SummaryInput
from hivepipe.summaries.excerpt import Excerpt

def keep(made):
    print(made.kind, made.reason, flush=True)
    os.kill(os.getpid(), 9)

summariser = Summariser(load_and_use()[0].home, keep)
summariser.summarise(SummaryInput("s", Excerpt("Mend it. " * 50, 5), {}))
"""


def test_an_answer_is_passed_on_before_a_kill_can_repeat_the_call(
    scene: Scene, llm: Provider
) -> None:
    scene.use(llm)
    runs = [
        outcome_of(
            [sys.executable, "-I", "-c", KILLED_WITH_THE_ANSWER], scene.home.env, scene.home.project
        )
        for _ in range(2)
    ]
    assert [done.returncode for done in runs] == [-9, -9]
    assert runs[0].stdout == "llm \n"
    assert runs[1].stdout == "plain the model was asked before, and that process was killed\n"
    assert len(llm.requests) == 1


def test_a_job_stopped_during_its_call_is_queued_again(scene: Scene, llm: Provider) -> None:
    """The call ends with the worker, at once; the next worker repeats it."""
    llm.script = [llm_server.hang]
    scene.use(llm)
    scene.start()
    scene.end()
    until(lambda: scene.make_due("slow") or llm.requests, "no request came")
    (child,) = calling_processes(scene)
    assert scene.llm.end() == 0
    assert not child.is_running()
    assert retry_waits(scene) == {}, "the call was not stopped, but timed out"
    scene.llm.start()
    row = scene.wait_for_summary()
    assert (row["kind"], len(llm.requests)) == ("llm", 2)


def test_what_names_the_folder_of_agreements(scene: Scene, llm: Provider) -> None:
    scene.use(llm)
    folder = scene.home.root / "state" / "hivepipe" / "summaries"
    assert len(list(folder.iterdir())) == 1
    assert str(folder) in scene.command("what", "--json")
