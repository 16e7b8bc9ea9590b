"""Hive workers of every kind at once; the orchestrator is killed and repeats its commands."""

import json
import random
import signal
import subprocess
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal

import pytest

from tests.conftest import Home, Process, until
from tests.hive_scene import DONE, Scene, played, script
from tests.rounds import SEED, rounds

ASK = 'status {"status": "need_input", "question": "Which?", "options": ["a", "b"]}'
ERROR = (
    'status {"status": "error", "error": "no auth.py", "attempted": "looked", "suggestion": "tell"}'
)
FULL = 'status {"status": "context_full", "progress": "half", "remaining": "the other half"}'

# name -> runs, cost in dollars, final state
SCRIPTS: dict[str, tuple[list[list[str]], str, str]] = {
    "succeed": ([["say on it", "call Edit a.py", "cost 0.01", "cost 0.11", DONE]], "0.11", "done"),
    "ask": ([["cost 0.20", ASK, "torn"], ["cost 0.02", DONE]], "0.22", "done"),
    "fail": ([["fail Bash", "cost 0.03", ERROR]], "0.03", "error"),
    "hang": ([["say hm", "cost 0.04", "hang"]], "0.04", "working"),
    "crash": ([["cost 0.05", "noise oops", "torn", "crash"]], "0.05", "died"),
    "fill": (
        [["cost 0.60", FULL], ["cost 0.06", "report What I learned."]],
        "0.66",
        "context_full",
    ),
    "break": ([["cost 0.07", 'raw {"status": "do']], "0.07", "broken"),
}

ORCHESTRATOR = """
import json, sys
from pathlib import Path
from hivepipe.config.config_file import load_and_use
from hivepipe.orchestrator.folder import find_hive
from hivepipe.orchestrator.orchestrator import Orchestrator
place, _ = load_and_use()
orchestrator = Orchestrator(find_hive(".", place.home))
for each in json.loads(Path(sys.argv[1]).read_text()):
    orchestrator.spawn(each["project"], each["task"], session=each["session"])
    print(each["session"], flush=True)
"""


@pytest.fixture
def scene(private_home: Home) -> Iterator[Scene]:
    yield from played(private_home)


def plans_of(number: int) -> list[dict[str, str]]:
    """Return the workers to spawn: every script, in both projects."""
    names = [*SCRIPTS] * (number // len(SCRIPTS) + 1)
    return [
        {
            "name": name,
            "project": ("project-a", "project-a-b")[at % 2],
            "task": script(*SCRIPTS[name][0]),
            "session": str(uuid.UUID(int=(at + 1) << 64 | 0x4000_8000 << 32)),
        }
        for at, name in enumerate(names[:number])
    ]


class OrchestratorProcess(Process):
    """An orchestrator that spawns a list of workers, one after the other."""

    def __init__(self, scene: Scene, plans: list[dict[str, str]]) -> None:
        listed = scene.home.root / "plans.json"
        listed.write_text(json.dumps(plans))
        command = [sys.executable, "-I", "-c", ORCHESTRATOR, str(listed)]
        super().__init__(
            command, scene.home.root / "orchestrator.log", scene.env, scene.home.project
        )


def test_workers_of_every_kind_survive_a_killed_orchestrator(scene: Scene) -> None:
    number = max(rounds(8), len(SCRIPTS))
    plans = plans_of(number)
    random.Random(SEED).shuffle(plans)
    first = OrchestratorProcess(scene, plans)
    first.start()
    until(lambda: len(scene.played()) >= number // 2, first.text)
    assert first.is_running, first.text
    first.end(signal.SIGKILL)
    assert len(scene.played()) < number  # the kill came in the middle
    second = OrchestratorProcess(scene, plans)
    second.start()
    until(lambda: not second.is_running, second.text)
    assert "Error" not in second.text

    wanted = {f"{plan['project']}-{plan['session']}": plan["name"] for plan in plans}
    at_rest = {"ask": "need_input"}
    until(lambda: states(scene, wanted, at_rest), f"{scene.run('check', '--all')}")
    for worker, name in wanted.items():
        if name == "ask":
            scene.run("answer", worker, "--option", "1")
        elif name == "fill":
            scene.run("park", worker)
    until(lambda: states(scene, wanted, {}), f"{scene.run('check', '--all')}")

    runs = Counter(played["session"] for played in scene.played())
    for plan in plans:
        assert runs[plan["session"]] == len(SCRIPTS[plan["name"]][0]), plan["name"]
    assert scene.violations == ""
    total = sum((Decimal(SCRIPTS[name][1]) for name in wanted.values()), Decimal(0))
    until(lambda: costs(scene) == total, f"{costs(scene)} is not {total}")
    hanging = sum(name == "hang" for name in wanted.values()) * Decimal("0.04")
    until(lambda: booked(scene) == total - hanging, f"{booked(scene)} is not {total - hanging}")
    for worker in wanted:
        scene.lines(worker)
    kinds = Counter(wanted.values())
    print(f"\n{number} workers ({dict(kinds)}), {len(scene.played())} runs, {total} USD")


def states(scene: Scene, wanted: dict[str, str], at_rest: dict[str, str]) -> bool:
    found = {each["id"]: each for each in scene.check()}
    assert set(found) <= set(wanted)
    return all(
        worker in found
        and found[worker]["state"] == at_rest.get(name, SCRIPTS[name][2])
        and (name == "hang" or not found[worker]["lives"])
        for worker, name in wanted.items()
    )


def costs(scene: Scene) -> Decimal:
    return Decimal(json.loads(scene.run("cost", "--json"))["total_usd"])


def booked(scene: Scene) -> Decimal:
    sql = "SELECT SUM(cost_micro_usd) AS spent FROM hive_runs WHERE ended_at > ''"
    return Decimal(scene.home.rows(sql)[0]["spent"]) / 1_000_000


def test_a_restarted_monitor_reports_what_it_missed(scene: Scene) -> None:
    gate = scene.home.root / "gate"
    task = script(['status {"status": "working", "progress": "1"}', f"wait {gate}", DONE])
    monitor = Process(
        [sys.executable, "-I", "-m", "hivepipe.cli.main", "hive", "monitor"],
        scene.home.root / "monitor.log",
        scene.env,
        scene.home.project,
    )
    monitor.start()
    try:
        worker = scene.spawn(task)
        line = f"STATUS_CHANGE:{scene.folder(worker)}/status.json\n"
        until(lambda: monitor.text.count(line) == 1, "it said nothing")
        monitor.end(signal.SIGKILL)
        gate.touch()
        scene.wait_for_state(worker, "done")
        monitor.start()
        until(lambda: f"PROCESS_ENDED:{scene.folder(worker)}\n" in monitor.text, monitor.text)
        assert monitor.text.count(line) == 2
        said = scene.home.rows("SELECT status FROM hive_statuses ORDER BY changed_ns")
        assert [row["status"] for row in said] == ["working", "done"]
        reported = scene.hive / "reported.json"  # written after the line was printed and handled
        until(lambda: f"{worker} ended" in reported.read_text(), "not dealt with")
        assert scene.run("monitor", "--once") == ""
    finally:
        if monitor.is_running:
            monitor.end()


def test_parallel_spawns_of_one_session_start_one_worker(scene: Scene) -> None:
    session = str(uuid.UUID(int=7 << 64 | 0x4000_8000 << 32))
    command = [sys.executable, "-I", "-m", "hivepipe.cli.main", "hive", "spawn"]
    arguments = ["project-a", script(["hang"]), "--session", session]
    started = [
        subprocess.Popen(
            [*command, *arguments],
            env=scene.env,
            cwd=scene.home.project,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(4)
    ]
    for each in started:
        each.communicate(timeout=60)
    assert len(scene.played()) <= 1
    until(lambda: len(scene.played()) == 1, "none began")
    assert scene.violations == ""
    assert len(list((scene.state(f"project-a-{session}") / "runs").glob("*.json"))) == 1
