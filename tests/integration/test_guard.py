"""The guard with real hooks and a real Redis: exact counts, and output that fits the contract."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main
from hivepipe.operations.late_notes import replay_notes
from hivepipe.queue.activity import Activity, take_activity
from tests import native_fire, payloads
from tests.conftest import ROOT, Home, Server, hook_answer, repeat_until_in_time
from tests.hook_contract import checked
from tests.payloads import SESSION, changed


class Scene:
    """A home with Redis, whose hooks fire with some HIVEPIPE_ variables."""

    def __init__(self, home: Home, server: Server) -> None:
        self.home = home
        self.server = server

    def fire(self, payload: dict[str, Any], **variables: str) -> dict[str, Any]:
        """Return the hook's output without the neutral part, checked against the contract."""
        event = payload["hook_event_name"]
        return checked(event, hook_answer(event, payload, self.home.with_env(**variables)))

    def fire_all(
        self, events: list[dict[str, Any]], at_once: int = 1, **variables: str
    ) -> list[dict[str, Any]]:
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(lambda event: self.fire(event, **variables), events))

    def activity(self, session: str = SESSION) -> dict[str, str]:
        with self.server.client() as client:
            found = client.hgetall(f"hivepipe:activity:{session}")
        return {key.decode(): value.decode() for key, value in found.items()}

    def taken(self) -> Activity:
        with self.server.client() as client:
            (found,) = take_activity(client)
        return found


@pytest.fixture
def scene(private_home: Home, redis_server: Server) -> Scene:
    return Scene(private_home, redis_server)


def same(times: int, **fields: Any) -> list[dict[str, Any]]:
    return [changed(payloads.PRE_BASH, tool_use_id=f"t{n}", **fields) for n in range(times)]


def denials(answers: list[dict[str, Any]]) -> int:
    return sum("permissionDecision" in answer for answer in answers)


def test_parallel_calls_are_counted_exactly(scene: Scene) -> None:
    times, expected = 50, 36
    answers: list[dict[str, Any]] = []

    def wave(session: str) -> None:
        answers[:] = scene.fire_all(same(times, session_id=session), times, GUARD="all")

    session = repeat_until_in_time(scene.home, wave)
    assert denials(answers) == expected
    assert sum("additionalContext" in answer for answer in answers) == 1
    with scene.server.client() as client:
        assert client.llen(f"hivepipe:calls:{session}") == times
    found = scene.activity(session)
    assert (found["calls"], found["denied"]) == (str(times), str(expected))


def test_a_denial_names_rule_and_count_and_explain_how_to_disable_it(scene: Scene) -> None:
    last = scene.fire_all(same(15), GUARD="all")[-1]
    reason = last["permissionDecisionReason"]
    assert "rule loop" in reason
    assert " 15 times " in reason
    assert "`" not in reason  # an agent might run a command in the text that it reads
    output = CliRunner().invoke(main, ["guard", "explain", "loop"]).stdout
    (command,) = [text for text in output.split("`") if text.startswith("hivepipe ")]
    assert CliRunner().invoke(main, command.split()[1:]).exit_code == 0
    assert scene.fire(changed(payloads.PRE_BASH, tool_use_id="after"), GUARD="all") == {}


def test_the_mode_and_the_task_decide_what_a_loop_gets(scene: Scene) -> None:
    def answers(session: str, **variables: str) -> list[dict[str, Any]]:
        return scene.fire_all(same(16, session_id=session), **variables)

    reported = answers("without-a-task")
    assert denials(reported) == 0
    assert [n for n, answer in enumerate(reported, 1) if answer] == [8, 15, 16]
    assert denials(answers("with-a-task", TASK_ID="t-7")) == 2
    assert not any(answers("off", GUARD="off"))
    assert scene.activity("off")["calls"] == "16"


def test_a_repeated_call_counts_once_and_gets_the_same_answer(scene: Scene) -> None:
    twice = [event for event in same(15) for _ in range(2)]
    answers = scene.fire_all(twice, GUARD="all")
    assert denials(answers) == 2
    assert denials(answers[-2:]) == 2
    found = scene.activity()
    assert (found["calls"], found["denied"], found["warned"]) == ("15", "1", "1")


def test_a_task_notification_does_not_restart_the_count(scene: Scene) -> None:
    scene.fire_all(same(14), GUARD="all")
    assert scene.fire(payloads.TASK_NOTIFICATION, GUARD="all") == {}
    assert scene.activity()["turn"] == "1"
    assert denials([scene.fire(changed(payloads.PRE_BASH, tool_use_id="new"), GUARD="all")]) == 1


def test_another_task_restarts_the_count(scene: Scene) -> None:
    scene.fire_all(same(14), GUARD="all", TASK_ID="one")
    new = changed(payloads.PRE_BASH, tool_use_id="new")
    assert scene.fire(new, GUARD="all", TASK_ID="two") == {}


def test_events_without_a_tool_use_id_are_paired_by_their_arguments(scene: Scene) -> None:
    for _ in range(3):
        scene.fire(changed(payloads.PRE_BASH, tool_use_id=...))
        scene.fire(changed(payloads.POST_BASH, tool_use_id=...))
    assert scene.activity()["calls"] == "3"


# ---- Redis away
def test_without_redis_every_call_is_allowed(scene: Scene) -> None:
    scene.server.end()
    assert not any(scene.fire_all(same(16), GUARD="all"))
    assert len(scene.home.spool) == 1  # the job that stores the session


def test_a_hanging_redis_allows_calls(scene: Scene) -> None:
    scene.fire_all(same(15), GUARD="all")
    scene.server.signal(signal.SIGSTOP)
    try:
        # The native hook's intake counted the calls before and still denies the first one.
        hung = [
            scene.fire(changed(payloads.PRE_BASH, tool_use_id=f"hung-{n}"), GUARD="all")
            for n in range(2)
        ]
        assert denials(hung) == native_fire.IS_NATIVE
    finally:
        scene.server.signal(signal.SIGCONT)
    assert denials([scene.fire(changed(payloads.PRE_BASH, tool_use_id="awake"), GUARD="all")]) == 1


def test_counts_survive_a_kill_of_redis(scene: Scene) -> None:
    scene.fire_all(same(14), GUARD="all")
    scene.server.end(signal.SIGKILL)
    scene.server.start()
    assert denials([scene.fire(changed(payloads.PRE_BASH, tool_use_id="later"), GUARD="all")]) == 1


def test_a_full_redis_allows_every_call(scene: Scene) -> None:
    with scene.server.client() as client:
        client.config_set("maxmemory", "1")
    assert not any(scene.fire_all(same(16), 4, GUARD="all"))


# ---- calls that Claude Code does not run
def batch_with_refused_call(number: int) -> dict[str, Any]:
    """Return a batch with a call that was not run, and one that has events of its own."""
    calls = [
        {**call, "tool_use_id": f"toolu_{number}_{at}"}
        for at, call in enumerate(payloads.POST_BATCH["tool_calls"])
    ]
    return changed(payloads.POST_BATCH, tool_calls=calls)


@pytest.mark.parametrize(("mode", "denials"), [("tasks", 0), ("all", 2), ("off", 0)])
def test_a_loop_of_refused_calls_is_reported_or_stopped(
    scene: Scene, mode: str, denials: int
) -> None:
    env = scene.home.with_env(GUARD=mode)
    answers = [
        hook_answer("PostToolBatch", batch_with_refused_call(number), env) for number in range(16)
    ]
    assert not any(answers[:7])
    reported = [text for text in answers if "rule loop: Edit was called" in text]
    ended = [json.loads(text) for text in answers if '"block"' in text]
    assert len(ended) == denials
    assert all("rule loop: Edit" in each["reason"] for each in ended)
    assert len(reported) == (0 if mode == "off" else 3)
    with scene.server.client() as client:
        (key,) = client.keys("hivepipe:activity:*")
        found = client.hmget(key, "calls", "failed")
    assert found == [b"16", b"16"]


def test_a_call_refused_after_its_event_is_closed(scene: Scene) -> None:
    scene.fire(payloads.PRE_BASH)
    call = payloads.PRE_BASH
    answer = "Permission to use Bash has been denied."
    batch = {name: call[name] for name in ("tool_name", "tool_input", "tool_use_id")}
    batched = changed(payloads.POST_BATCH, tool_calls=[batch | {"tool_response": answer}])
    for _ in range(2):
        assert scene.fire(batched) == {}
    activity = scene.taken()
    assert (activity.calls, activity.failed, activity.open_calls) == (1, 1, 0)


@pytest.mark.parametrize(
    ("last", "failed", "is_named"),
    [
        (payloads.PRE_BASH, 1, True),
        (payloads.POST_BASH, 0, True),
        (payloads.FAILED_BASH, 1, True),
        (payloads.POST_BASH, 0, False),  # hooks that older versions registered pass no event name
    ],
)
def test_a_batch_is_counted_after_spooled_calls(
    scene: Scene, last: dict[str, Any], failed: int, is_named: bool
) -> None:
    """Redis is back, but the writer has not yet applied the notes that hooks spooled meanwhile."""
    call = payloads.PRE_BASH
    fields = ("tool_name", "tool_input", "tool_use_id")
    ran = [{name: call[name] for name in fields} | {"tool_response": "It said this."}]
    if last is not call:
        scene.fire(call)
    scene.server.end(signal.SIGKILL)
    scene.fire(changed(last, tool_use_id=call["tool_use_id"]))
    scene.server.start()
    batched = changed(payloads.POST_BATCH, tool_calls=ran)
    if is_named:
        assert scene.fire(batched) == {}
    else:
        code = "from hivepipe.hook.run import run; run('')"
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            input=json.dumps(batched).encode(),
            env=scene.home.env,
            check=True,
            timeout=60,
        )
    with scene.server.client() as client:
        replay_notes(client, str(scene.home.path))
    activity = scene.taken()
    assert (activity.calls, activity.failed, activity.open_calls) == (1, failed, 0)


def test_a_call_denied_by_claude_code_is_closed(scene: Scene) -> None:
    denied = payloads.PERMISSION_DENIED
    called = changed(denied, hook_event_name="PreToolUse", reason=...)
    for payload in (called, denied):
        assert scene.fire(payload) == {}
    activity = scene.taken()
    assert (activity.calls, activity.failed, activity.open_calls) == (1, 1, 0)


def test_a_session_waits_for_an_answer_until_the_next_event(scene: Scene) -> None:
    for payload, waits_for in (
        (payloads.PERMISSION_REQUEST, "permission: Bash"),
        (payloads.POST_BASH, ""),
        (payloads.NOTIFICATION, "Claude needs your permission"),
        (payloads.STOP, ""),
        (changed(payloads.NOTIFICATION, notification_type="idle_prompt"), ""),
    ):
        scene.fire(payload)
        assert scene.taken().waits_for == waits_for


# ---- how a call is described
@pytest.mark.parametrize(
    ("payload", "is_told"),
    [(payloads.PRE_BASH, True), (payloads.PRE_AGENT, True), (payloads.PRE_EDIT, False)],
)
def test_the_description_of_a_call_does_not_distinguish_calls(
    scene: Scene, payload: dict[str, Any], is_told: bool
) -> None:
    answers = []
    for number in range(9):
        arguments = {**payload["tool_input"], "description": f"Try {number}"}
        call = changed(payload, tool_input=arguments, tool_use_id=f"t{number}")
        answers.append(str(scene.fire(call)))
    assert bool(any("rule loop" in text for text in answers)) == is_told


# ---- whole sessions through real hooks
# ---- the commands
@pytest.fixture
def command(private_home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str]]:
    monkeypatch.chdir(private_home.project)

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["guard", *arguments])
        return result.exit_code, result.output

    return run


def test_try_shows_the_decisions_of_the_guard(
    command: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text("\n".join(json.dumps(event) for event in same(16)) + "\n")
    code, output = command("try", str(file), "--json")
    found = json.loads(output)
    assert (code, found["schema"], found["calls"]) == (0, 1, 16)
    assert (found["denied"], found["warned"]) == (2, 1)
    assert found["findings"][-1] == {
        "line": 16,
        "tool": "Bash",
        "denied": True,
        "rule": "loop",
        "count": 16,
    }
    assert "16 calls, 2 denied, 1 warned" in command("try", str(file))[1]


def test_try_refuses_a_file_of_another_kind(
    command: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    file = tmp_path / "noise"
    file.write_bytes(os.urandom(4096) + b"\n{}\n[1]\n" + b'{"hook_event_name": "PreToolUse"}\n')
    code, output = command("try", str(file))
    assert (code, "is neither a transcript nor a file of hook events" in output) == (1, True)
    file.write_text(json.dumps({**same(1)[0], "hook_event_name": "UserPromptSubmit"}))
    assert command("try", str(file)) == (0, "0 calls, 0 denied, 0 warned\n")
    assert command("try", str(tmp_path / "missing"))[0] == 64


def test_the_mode_is_set_shown_and_reset(command: Callable[..., tuple[int, str]]) -> None:
    assert command("mode")[1].startswith("tasks:")
    assert command("mode", "all")[1] == (
        "all: a call that breaks a rule is denied in every session\n"
    )
    assert command("mode", "off")[1].startswith("off:")
    assert "mode off" in command("list")[1]
    assert command("mode", "default")[1].startswith("tasks:")
    assert command("mode", "loud")[0] == 64


def test_config_toml_reaches_the_hooks(
    scene: Scene, command: Callable[..., tuple[int, str]]
) -> None:
    text = """guard = "all"\nguard_loop = [2, 3]\nguard_waiting = []\n"""
    (scene.home.path / "config.toml").write_text(text)
    assert "mode all" in command("list")[1]
    answers = scene.fire_all(same(3, tool_input={"command": "sleep 1"}))
    assert [list(answer) for answer in answers] == [
        [],
        ["additionalContext"],
        ["permissionDecision", "permissionDecisionReason"],
    ]


def test_every_rule_is_listed_and_explained(command: Callable[..., tuple[int, str]]) -> None:
    for rule in ("cancelled", "shared-disk", "loop", "alternation", "poll"):
        assert rule in command("list")[1]
        code, output = command("explain", rule)
        assert code == 0
        assert "{" not in output
