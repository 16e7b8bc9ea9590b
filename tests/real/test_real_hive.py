"""Hive workers that are real clients: states, costs and processes equal the scripts."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from tests.conftest import until
from tests.real.environment import client_environment, needs_claude, settle
from tests.real.messages_api import USAGE
from tests.real.person import Person
from tests.real.scenarios import WRITE, bash
from tests.real.script import Answer, Call, Say, Script, Slow

pytestmark = needs_claude
NAMED = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")


TICKS_SECS = 600  # a policy takes one step a minute
# The number of turns of a stopped client that remain in its session varies with its version.
LONG = 8


class HiveProject:
    """A project with a hive, a second project for its worker, and the scripts of the worker."""

    def __init__(self, person: Person, settings: str) -> None:
        self.person = person
        self.session = str(uuid4())
        self.worker = f"den-{self.session}"
        self.hive_folder = person.project / ".hive"
        self.folder = self.hive_folder / "workers" / self.worker
        self.project = person.home / "den"
        self.project.mkdir()
        for words in (
            ("init", "-q"),
            ("config", "user.name", "Ann"),
            ("config", "user.email", "a@b.c"),
        ):
            subprocess.run(["git", "-C", str(self.project), *words], env=person.env, check=True)
        config = person.home / ".config" / "hivepipe" / "config.toml"
        config.parent.mkdir(parents=True)
        passed = "" if settings else f"hive_env = {json.dumps(NAMED)}\n"
        config.write_text(f'hive_rights = "commits"\n{passed}{settings}')
        if settings:  # A run that the stack starts reads its login from the client's own settings.
            file = person.home / ".claude" / "settings.json"
            known = json.loads(file.read_text()) if file.exists() else {}
            login = {name: person.env[name] for name in NAMED}
            file.write_text(json.dumps({**known, "env": login}))
        # On a busy machine the stack is ready a little later.
        person.hivepipe("up", "-d", expect=None)
        person.hivepipe("hive", "init")
        person.hivepipe("hive", "projects", "add", "den", str(self.project))

    def set_scripts(self, *scripts: Script) -> None:
        """Set the scripts that answer the worker from now on."""
        self.person.api.scripts = {script.name: script for script in scripts}

    def status(self, **fields: object) -> list[Answer]:
        """Return the calls that write status.json as the worker's instructions say."""
        path = self.folder / "status.json"
        new = {"file_path": f"{path}.new", "content": json.dumps(fields)}
        return [[Call(WRITE, new)], [bash(f"mv {path}.new {path}")]]

    def spawn(self, script: Script) -> None:
        said = self.hivepipe("spawn", "den", script.prompt("Dig a hole"), "--session", self.session)
        assert said.strip() == self.worker

    def first_message_to(self, worker: str) -> str:
        """Return the first message of a worker, or "" before its first request."""
        messages = (json.dumps(each.body["messages"][0]) for each in self.person.api.requests)
        return next((text for text in messages if worker in text), "")

    def hivepipe(self, *words: str, expect: int | None = 0) -> str:
        return self.person.hivepipe("hive", *words, expect=expect)

    def steps(self) -> list[str]:
        """Return the policy's steps for the worker, oldest first."""
        hives = self.person.home / ".local" / "state" / "hivepipe" / "hives"
        paths = [*hives.glob("*/workers/*/steps.jsonl")]
        path = next((each for each in paths if self.worker in str(each)), None)
        if path is None:
            return []
        return [json.loads(line)["step"] for line in path.read_text().splitlines()]

    def row(self, worker: str = "") -> dict[str, Any]:
        (found,) = self.person.json("hive", "check", worker or self.worker)["workers"]
        return dict(found)

    def workers(self) -> list[str]:
        return [each["id"] for each in self.person.json("hive", "check")["workers"]]

    def wait_for_state(
        self, state: str, *, lives: bool = False, secs: float = 120
    ) -> dict[str, Any]:
        """Wait until the worker has a state, and return its row."""

        def look() -> dict[str, Any] | None:
            found = self.row()
            return found if (found["state"], found["lives"]) == (state, lives) else None

        return dict(until(look, f"it is not {state}: {self.row()}", secs) or {})

    def compare_costs(self) -> None:
        """The costs of the hive and of its session equal those of the served answers."""
        settle(self.person)
        served = sum(not each.is_refused for each in self.person.api.requests)
        (row,) = self.person.json("costs", "--by", "session")["costs"]
        assert row["session"] == self.session
        assert row["messages"] == served
        assert row["tokens"]["output"] == served * USAGE["output_tokens"]
        total = Decimal(self.person.json("hive", "costs")["total_usd"])
        assert float(total) == pytest.approx(row["cost_usd"], abs=1e-6)


@pytest.fixture
def hive(request: pytest.FixtureRequest) -> Iterator[HiveProject]:
    """A hive project; the parameter is appended to the user's config.toml."""
    with client_environment() as person:
        made = HiveProject(person, getattr(request, "param", ""))
        try:
            yield made
        finally:
            end(made)


def end(hive: HiveProject) -> None:
    """Kill the worker's process group if it runs."""
    found = json.loads(hive.hivepipe("check", "--json", expect=None) or "{}").get("workers", [])
    for pid in [each["pid"] for each in found if each["lives"]]:
        os.killpg(os.getpgid(pid), signal.SIGKILL)


def test_a_worker_asks_is_answered_parks_and_is_archived(hive: HiveProject) -> None:
    hole = {"file_path": str(hive.project / "hole.txt"), "content": "deep\n"}
    insights = hive.hive_folder / "learnings" / "den-insights.md"
    insight = {"file_path": str(insights), "content": "Sand.\n"}
    options = ["a metre <<deep>>", "two metres <<deeper>>"]
    done = {"result": "It is dug", "committed": True, "parked": True}
    dig = Script("dig", [*hive.status(status="working", progress="digging"),
                         *hive.status(status="need_input", question="How deep?", options=options),
                         [Say("I wait.")]])  # fmt: skip
    # The answer is slow, so that the commands below meet a running worker.
    deeper = Script("deeper", [Slow([Call(WRITE, hole)], 10), [bash("git add hole.txt")],
                               [bash("git commit -m 'Dig'")], *hive.status(status="done", **done),
                               [Say("Dug.")], [Call(WRITE, insight)],
                               [Say("Parked.")]])  # fmt: skip
    more = Script("more", [[Say("Nothing is left.")]])
    hive.set_scripts(dig, deeper, more)
    hive.spawn(dig)
    hive.spawn(dig)  # A repeated command spawns no second worker.
    found = hive.wait_for_state("need_input")
    assert (found["note"], found["run"], found["exit_code"]) == ("How deep?", 1, 0)
    assert [each.script for each in hive.person.api.requests] == ["dig"] * 5
    assert hive.hivepipe("monitor", "--once").splitlines() == [
        f"STATUS_CHANGE:{hive.folder}/status.json",
        f"PROCESS_ENDED:{hive.folder}",
    ]
    hive.hivepipe("answer", hive.worker, "--option", "2")
    for words in (("resume", hive.worker, "x"), ("park", hive.worker), ("archive", hive.worker)):
        hive.hivepipe(*words, expect=1)  # Two processes would corrupt the session.
    assert hive.wait_for_state("done")["note"] == "It is dug"
    assert hive.person.api.requests[5].script == "deeper"
    words = ["git", "-C", str(hive.project), "log", "--format=%s"]
    assert subprocess.check_output(words, env=hive.person.env, text=True) == "Dig\n"
    hive.hivepipe("park", hive.worker)
    until(lambda: hive.row()["run"] == 3 and not hive.row()["lives"], "it parks for ever", 120)
    assert hive.row()["state"] == "done"
    assert "Sand." in hive.hivepipe("learnings", "den")
    hive.hivepipe("resume", hive.worker, "Anything left? <<more>>")
    found = hive.wait_for_state("ended")
    assert found["note"] == "it wrote no status.json; its last words: Nothing is left."
    assert [each.script for each in hive.person.api.requests] == [
        *["dig"] * 5, *["deeper"] * 8, "more",
    ]  # fmt: skip
    hive.compare_costs()
    calls = hive.hivepipe("transcript", hive.worker, "--calls").splitlines()
    assert sum(line.startswith("calls") for line in calls) == len(dig.calls) + len(deeper.calls)
    (row,) = hive.person.json("sessions", "--all")["sessions"]
    assert (row["id"], row["status"], row["failed"]) == (hive.session, "ended", 0)
    assert row["calls"] == len(dig.calls) + len(deeper.calls)
    cost = hive.person.json("hive", "costs")["total_usd"]
    hive.hivepipe("archive", hive.worker)
    assert hive.person.json("hive", "costs")["total_usd"] == cost
    hive.hivepipe("spawn", "den", dig.prompt("Dig"), "--session", hive.session, expect=1)


def test_a_cancelled_worker_is_stopped_and_shown_as_cancelled(hive: HiveProject) -> None:
    wrote = hive.project / "more.txt"
    dig = Script("dig", [Slow([bash(f"touch {wrote}")], 20), [Say("I was told to stop.")]])
    hive.set_scripts(dig)
    hive.spawn(dig)
    until(lambda: hive.person.api.requests, "it never began", 60)
    hive.person.hivepipe("task", "cancel", hive.worker, "--reason", "Too deep")
    found = hive.wait_for_state("cancelled")
    assert found["note"] == "its task was cancelled: Too deep"
    assert not wrote.exists()
    hive.hivepipe("answer", hive.worker, "Go on", expect=1)
    hive.compare_costs()


def test_a_killed_worker_is_shown_with_its_signal(hive: HiveProject) -> None:
    dig = Script("dig", [Slow([Say("Never said.")], 100)])
    hive.set_scripts(dig)
    hive.spawn(dig)
    until(lambda: hive.person.api.requests, "it never began", 60)
    os.kill(hive.row()["pid"], signal.SIGKILL)
    assert "was killed by signal 9" in hive.wait_for_state("died")["note"]
    assert hive.person.json("hive", "costs")["unpriced_runs"] == 1


def with_policy(policy: str) -> pytest.MarkDecorator:
    text = f'hive_policy = "{policy}"\nhive_stale_secs = 15\nhive_grace_secs = 10\n'
    return pytest.mark.parametrize("hive", [text], indirect=True, ids=[policy])


@with_policy("ask")
def test_a_silent_worker_is_asked_and_continues(hive: HiveProject) -> None:
    silent = Slow([Say("Never said.")], TICKS_SECS)
    hive.set_scripts(Script("dig", [*hive.status(status="working", progress="digging"), silent]))
    hive.spawn(Script("dig", []))
    until(lambda: len(hive.person.api.requests) == 3, "it does not fall silent", 60)
    (write,), (move,) = hive.status(status="done", result="It is dug", committed=False, parked=True)
    hive.set_scripts(Script("dig", [[write, move]] * LONG))
    hive.wait_for_state("done", secs=TICKS_SECS)
    assert hive.steps() == ["stop", "ask"]
    assert "Are you still working?" in json.dumps(hive.person.api.requests[3].body["messages"][-2:])
    assert hive.workers() == [hive.worker]


@with_policy("respawn")
def test_the_task_of_a_worker_that_stays_silent_goes_to_another(hive: HiveProject) -> None:
    silent = Slow([Say("Never said.")], TICKS_SECS)
    hive.set_scripts(
        Script("dig", [*hive.status(status="working", progress="digging"), *[silent] * LONG])
    )
    hive.spawn(Script("dig", []))
    until(lambda: "give up" in hive.steps(), "it is not given up", TICKS_SECS)
    hive.set_scripts(Script("dig", [[Say("I write it down.")]] * LONG))
    (other,) = (
        until(lambda: {*hive.workers()} - {hive.worker}, "nobody takes over", TICKS_SECS) or ()
    )
    assert hive.steps() == ["stop", "ask", "stop", "give up", "park", "respawn"]
    first = until(lambda: hive.first_message_to(other), "the other one asks nothing", 120) or ""
    assert "Dig a hole" in first
    assert "digging" in first  # the progress of the first worker
    until(lambda: not hive.row(other)["lives"], "the other one never ends", 120)
    assert hive.row()["state"] == "error"
