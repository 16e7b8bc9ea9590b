"""What was done about a worker that went silent, and what is to be done next: each step once.

    limit       a step was due that costs, and today's money is spent: tomorrow
    report      said, and nothing done: the default, for every other step may cost money
    stop        its process group is told to end
    kill        ... and did not, within the grace time
    ask         it is resumed: "Are you still working?"
    give up     still silent: status.json says error, by us
    park        it is resumed once more, to write down what it learned
    respawn     a fresh worker gets the task

Never of a worker that is done, asks, reports an error of its own, or was archived. Steps stand in
`steps.jsonl` of its state before they are taken, so none is taken twice. A respawn may be: it is
the same worker however often it is said.
"""

import json
import time
from typing import NamedTuple

from hivepipe.hive.plain_file import read_end
from hivepipe.hive.standing import Standing
from hivepipe.hive.worker import Worker
from hivepipe.settings import hive_grace_secs, hive_limit_usd, hive_policy, hive_respawns

BY_US = "hivepipe"


class Policy(NamedTuple):
    """What may be done without asking; `grace_secs` is how long an answer may take."""

    mode: str  # report, ask, respawn
    grace_secs: float
    respawns: int
    limit_usd: float  # a day, of what asking, parking and respawning cost

    @classmethod
    def of_settings(cls) -> "Policy":
        """Return what the settings say."""
        return cls(hive_policy(), hive_grace_secs(), hive_respawns(), hive_limit_usd())


class Step(NamedTuple):
    """One step that was taken, and in which run of the worker."""

    name: str
    run: int
    at_ns: int


def taken(worker: Worker) -> list[Step]:
    """Return the steps that were taken, the oldest first; half a line counts for nothing."""
    found = []
    try:
        lines = (worker.state / "steps.jsonl").read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            said = json.loads(line)
            found.append(Step(str(said["step"]), int(said["run"]), int(said["at_ns"])))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def note(worker: Worker, name: str, run: int) -> None:
    """Write a step down, before it is taken."""
    line = json.dumps({"step": name, "run": run, "at_ns": time.time_ns()})
    path = worker.state / "steps.jsonl"
    break_off = "" if read_end(path, 1) in ("", "\n") else "\n"  # half a line, of a full disk
    with path.open("a") as file:
        file.write(f"{break_off}{line}\n")


def next_step(standing: Standing, steps: list[Step], policy: Policy, now_ns: int) -> str:
    """Return what is to be done about a worker now; empty: nothing."""
    run = standing.run
    if run is None:
        return ""
    of_run = {step.name for step in steps if step.run == run.number}
    silent_secs = (now_ns - standing.heard_ns) / 1e9 if standing.heard_ns else 0
    if policy.mode == "report":
        return "report" if standing.state == "stale" and "report" not in of_run else ""
    if standing.lives is None or standing.stranger:
        return ""
    if standing.lives:
        return _of_living(standing, steps, policy, silent_secs, now_ns)
    if standing.state == "died":
        return _of_dead(standing, of_run)
    has_given_up = any(step.name == "give up" for step in steps)  # the word alone is the worker's
    if standing.state == "error" and has_given_up and standing.status.text("by") == BY_US:
        return _of_given_up(standing, steps, policy)
    return ""


def _of_living(
    standing: Standing, steps: list[Step], policy: Policy, silent_secs: float, now_ns: int
) -> str:
    run = standing.run
    assert run is not None
    stops = [step for step in steps if step.run == run.number and step.name == "stop"]
    if stops:
        is_over = (now_ns - stops[0].at_ns) / 1e9 >= policy.grace_secs
        killed = any(step.run == run.number and step.name == "kill" for step in steps)
        return "kill" if is_over and not killed else ""
    if run.kind in ("ask", "park"):
        return "stop" if silent_secs >= policy.grace_secs else ""
    return "stop" if standing.state == "stale" else ""


def _of_dead(standing: Standing, of_run: set[str]) -> str:
    """A worker that died by itself is told of, not resumed: only silence is this policy's."""
    run = standing.run
    assert run is not None
    if run.kind == "ask":
        return "give up" if "give up" not in of_run else ""
    return "ask" if "stop" in of_run and "ask" not in of_run else ""


def _of_given_up(standing: Standing, steps: list[Step], policy: Policy) -> str:
    run = standing.run
    assert run is not None
    if not any(step.name == "park" for step in steps):
        return "park"
    may_respawn = policy.mode == "respawn" and standing.worker.card().respawns < policy.respawns
    return "respawn" if may_respawn else ""
