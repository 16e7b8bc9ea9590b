"""Workers of a hive that are the real client: states, costs and processes, as they were ordered."""

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
from tests.real.environment import living, needs_claude, settle
from tests.real.messages_api import USAGE
from tests.real.person import Person
from tests.real.scenarios import WRITE, bash
from tests.real.script import Answer, Call, Say, Script, Slow

pytestmark = needs_claude
NAMED = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC")


TICKS_SECS = 600  # a policy takes one step a minute
LONG = 8  # turns: what a client that is ended in a turn keeps of it varies with its version


class Den:
    """An orchestrator's project with a hive, a project to send one worker to, and its scripts."""

    def __init__(self, person: Person, settings: str) -> None:
        self.person = person
        self.session = str(uuid4())
        self.worker = f"den-{self.session}"
        self.hive = person.project / ".hive"
        self.folder = self.hive / "workers" / self.worker
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
        if settings:  # a run that the stack starts has its login from the client's own files
            file = person.home / ".claude" / "settings.json"
            known = json.loads(file.read_text()) if file.exists() else {}
            login = {name: person.env[name] for name in NAMED}
            file.write_text(json.dumps({**known, "env": login}))
        person.hivepipe("up", "-d", expect=None)  # on a busy machine it is ready a little later
        person.hivepipe("hive", "init")
        person.hivepipe("hive", "projects", "add", "den", str(self.project))

    def plays(self, *scripts: Script) -> None:
        """Let the worker's client be answered by these scripts from now on."""
        self.person.api.scripts = {script.name: script for script in scripts}

    def says(self, **fields: object) -> list[Answer]:
        """Return the answers that write status.json as a worker is told to."""
        path = self.folder / "status.json"
        new = {"file_path": f"{path}.new", "content": json.dumps(fields)}
        return [[Call(WRITE, new)], [bash(f"mv {path}.new {path}")]]

    def spawn(self, script: Script) -> None:
        said = self.hivepipe("spawn", "den", script.prompt("Dig a hole"), "--session", self.session)
        assert said.strip() == self.worker

    def first_message_to(self, worker: str) -> str:
        """Return what a worker was told first, "" before its first request."""
        told = (json.dumps(each.body["messages"][0]) for each in self.person.api.requests)
        return next((text for text in told if worker in text), "")

    def hivepipe(self, *words: str, expect: int | None = 0) -> str:
        return self.person.hivepipe("hive", *words, expect=expect)

    def steps(self) -> list[str]:
        """Return the steps that the policy took for the worker, oldest first."""
        hives = self.person.home / ".local" / "state" / "hivepipe" / "hives"
        paths = [*hives.glob("*/workers/*/steps.jsonl")]
        path = next((each for each in paths if self.worker in str(each)), None)
        if path is None:
            return []
        return [json.loads(line)["step"] for line in path.read_text().splitlines()]

    def stand(self, worker: str = "") -> dict[str, Any]:
        (found,) = self.person.json("hive", "check", worker or self.worker)["workers"]
        return dict(found)

    def workers(self) -> list[str]:
        return [each["id"] for each in self.person.json("hive", "check")["workers"]]

    def becomes(self, state: str, *, lives: bool = False, secs: float = 120) -> dict[str, Any]:
        """Wait until the worker stands so."""

        def look() -> dict[str, Any] | None:
            found = self.stand()
            return found if (found["state"], found["lives"]) == (state, lives) else None

        return dict(until(look, f"it is not {state}: {self.stand()}", secs) or {})

    def compare_costs(self) -> None:
        """The hive's costs, those of its session and what was served are one."""
        settle(self.person)
        served = sum(not each.is_refused for each in self.person.api.requests)
        (row,) = self.person.json("costs", "--by", "session")["costs"]
        assert row["session"] == self.session
        assert row["messages"] == served
        assert row["tokens"]["output"] == served * USAGE["output_tokens"]
        total = Decimal(self.person.json("hive", "costs")["total_usd"])
        assert float(total) == pytest.approx(row["cost_usd"], abs=1e-6)


@pytest.fixture
def den(request: pytest.FixtureRequest) -> Iterator[Den]:
    """A den; its parameter is what stands in the user's config.toml beside the rights."""
    with living() as person:
        made = Den(person, getattr(request, "param", ""))
        try:
            yield made
        finally:
            end(made)


def end(den: Den) -> None:
    """End the worker's process, by its pid, if it lives."""
    found = json.loads(den.hivepipe("check", "--json", expect=None) or "{}").get("workers", [])
    for pid in [each["pid"] for each in found if each["lives"]]:
        os.killpg(os.getpgid(pid), signal.SIGKILL)


def test_a_worker_asks_is_answered_parks_and_is_archived(den: Den) -> None:
    hole = {"file_path": str(den.project / "hole.txt"), "content": "deep\n"}
    insight = {"file_path": str(den.hive / "learnings" / "den-insights.md"), "content": "Sand.\n"}
    options = ["a metre <<deep>>", "two metres <<deeper>>"]
    done = {"result": "It is dug", "committed": True, "parked": True}
    dig = Script("dig", [*den.says(status="working", progress="digging"),
                         *den.says(status="need_input", question="How deep?", options=options),
                         [Say("I wait.")]])  # fmt: skip
    # Slow, so that the commands below meet a running worker.
    deeper = Script("deeper", [Slow([Call(WRITE, hole)], 10), [bash("git add hole.txt")],
                               [bash("git commit -m 'Dig'")], *den.says(status="done", **done),
                               [Say("Dug.")], [Call(WRITE, insight)],
                               [Say("Parked.")]])  # fmt: skip
    more = Script("more", [[Say("Nothing is left.")]])
    den.plays(dig, deeper, more)
    den.spawn(dig)
    den.spawn(dig)  # said twice, spawned once
    found = den.becomes("need_input")
    assert (found["note"], found["run"], found["exit_code"]) == ("How deep?", 1, 0)
    assert [each.script for each in den.person.api.requests] == ["dig"] * 5
    assert den.hivepipe("monitor", "--once").splitlines() == [
        f"STATUS_CHANGE:{den.folder}/status.json",
        f"PROCESS_ENDED:{den.folder}",
    ]
    den.hivepipe("answer", den.worker, "--option", "2")
    for words in (("resume", den.worker, "x"), ("park", den.worker), ("archive", den.worker)):
        den.hivepipe(*words, expect=1)  # two processes would spoil its session
    assert den.becomes("done")["note"] == "It is dug"
    assert den.person.api.requests[5].script == "deeper"
    words = ["git", "-C", str(den.project), "log", "--format=%s"]
    assert subprocess.check_output(words, env=den.person.env, text=True) == "Dig\n"
    den.hivepipe("park", den.worker)
    until(lambda: den.stand()["run"] == 3 and not den.stand()["lives"], "it parks for ever", 120)
    assert den.stand()["state"] == "done"
    assert "Sand." in den.hivepipe("learnings", "den")
    den.hivepipe("resume", den.worker, "Anything left? <<more>>")
    found = den.becomes("ended")
    assert found["note"] == "it wrote no status.json; its last words: Nothing is left."
    assert [each.script for each in den.person.api.requests] == [
        *["dig"] * 5, *["deeper"] * 8, "more",
    ]  # fmt: skip
    den.compare_costs()
    calls = den.hivepipe("transcript", den.worker, "--calls").splitlines()
    assert sum(line.startswith("calls") for line in calls) == len(dig.calls) + len(deeper.calls)
    (row,) = den.person.json("sessions", "--all")["sessions"]
    assert (row["id"], row["status"], row["failed"]) == (den.session, "ended", 0)
    assert row["calls"] == len(dig.calls) + len(deeper.calls)
    cost = den.person.json("hive", "costs")["total_usd"]
    den.hivepipe("archive", den.worker)
    assert den.person.json("hive", "costs")["total_usd"] == cost
    den.hivepipe("spawn", "den", dig.prompt("Dig"), "--session", den.session, expect=1)


def test_a_cancelled_worker_is_stopped_and_shown_as_cancelled(den: Den) -> None:
    wrote = den.project / "more.txt"
    dig = Script("dig", [Slow([bash(f"touch {wrote}")], 20), [Say("I was told to stop.")]])
    den.plays(dig)
    den.spawn(dig)
    until(lambda: den.person.api.requests, "it never began", 60)
    den.person.hivepipe("task", "cancel", den.worker, "--reason", "Too deep")
    found = den.becomes("cancelled")
    assert found["note"] == "its task was cancelled: Too deep"
    assert not wrote.exists()
    den.hivepipe("answer", den.worker, "Go on", expect=1)
    den.compare_costs()


def test_a_killed_worker_died_by_its_signal(den: Den) -> None:
    dig = Script("dig", [Slow([Say("Never said.")], 100)])
    den.plays(dig)
    den.spawn(dig)
    until(lambda: den.person.api.requests, "it never began", 60)
    os.kill(den.stand()["pid"], signal.SIGKILL)
    assert "was killed by signal 9" in den.becomes("died")["note"]
    assert den.person.json("hive", "costs")["unpriced_runs"] == 1


def with_policy(policy: str) -> pytest.MarkDecorator:
    text = f'hive_policy = "{policy}"\nhive_stale_secs = 15\nhive_grace_secs = 10\n'
    return pytest.mark.parametrize("den", [text], indirect=True, ids=[policy])


@with_policy("ask")
def test_a_silent_worker_is_asked_and_goes_on(den: Den) -> None:
    silent = Slow([Say("Never said.")], TICKS_SECS)
    den.plays(Script("dig", [*den.says(status="working", progress="digging"), silent]))
    den.spawn(Script("dig", []))
    until(lambda: len(den.person.api.requests) == 3, "it does not fall silent", 60)
    (write,), (move,) = den.says(status="done", result="It is dug", committed=False, parked=True)
    den.plays(Script("dig", [[write, move]] * LONG))
    den.becomes("done", secs=TICKS_SECS)
    assert den.steps() == ["stop", "ask"]
    assert "Are you still working?" in json.dumps(den.person.api.requests[3].body["messages"][-2:])
    assert den.workers() == [den.worker]


@with_policy("respawn")
def test_the_task_of_a_worker_that_stays_silent_goes_to_another(den: Den) -> None:
    silent = Slow([Say("Never said.")], TICKS_SECS)
    den.plays(Script("dig", [*den.says(status="working", progress="digging"), *[silent] * LONG]))
    den.spawn(Script("dig", []))
    until(lambda: "give up" in den.steps(), "it is not given up", TICKS_SECS)
    den.plays(Script("dig", [[Say("I write it down.")]] * LONG))
    (other,) = until(lambda: {*den.workers()} - {den.worker}, "nobody takes over", TICKS_SECS) or ()
    assert den.steps() == ["stop", "ask", "stop", "give up", "park", "respawn"]
    first = until(lambda: den.first_message_to(other), "the other one asks nothing", 120) or ""
    assert "Dig a hole" in first
    assert "digging" in first  # the progress of the first
    until(lambda: not den.stand(other)["lives"], "the other one never ends", 120)
    assert den.stand()["state"] == "error"
