"""What was done about a worker that went silent, and what is to be done next.

    limit       a step was due that costs, and today's money is spent: tomorrow
    report      said, and nothing done: the default, for every other step may cost money
    stop        its process group is told to end
    kill        ... and did not, within the grace time
    ask         it is resumed: "Are you still working?"
    give up     still silent: status.json says error, by us
    park        it is resumed once more, to write down what it learned
    respawn     a fresh worker gets the task

Never of a worker that is done, asks, reports an error of its own, or was archived.

An episode begins with a run that somebody asked for (spawn, resume, answer); the runs that ask and
park belong to it. `ask`, `give up`, `park` and `respawn` are taken once in an episode, the others
once in a run, whatever the worker writes, hangs in or is killed at. Steps stand in `steps.jsonl`
of its state before they are taken. Only a respawn that was interrupted is taken again: it is the
same worker however often it is said.
"""

import fcntl
import json
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from hivepipe.hive.run import Run
from hivepipe.hive.standing import Standing
from hivepipe.hive.worker import Worker
from hivepipe.regular_file import read_text
from hivepipe.settings import hive_grace_secs, hive_limit_usd, hive_policy, hive_respawns

BY_US = "hivepipe"
_OUR_RUNS = ("ask", "park")  # kinds of runs that continue an episode
_ONCE_AN_EPISODE = ("ask", "give up", "park", "respawn")


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
        lines = read_text(worker.state / "steps.jsonl", "utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            said = json.loads(line)
            found.append(Step(str(said["step"]), int(said["run"]), int(said["at_ns"])))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def note(worker: Worker, name: str, run: int) -> bool:
    """Write a step down, before it is taken; False: it was taken already."""
    line = json.dumps({"step": name, "run": run, "at_ns": time.time_ns()})
    with (worker.state / "steps.jsonl").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the clock and a monitor may look at the same time
        if name in _names(worker, taken(worker), run):
            return False
        file.seek(0)
        break_off = "" if file.read()[-1:] in ("", "\n") else "\n"  # half a line, of a full disk
        file.write(f"{break_off}{line}\n")
    return True


def next_step(standing: Standing, steps: list[Step], policy: Policy, now_ns: int) -> str:
    """Return what is to be done about a worker now; empty: nothing."""
    run = standing.run
    if run is None:
        return ""
    names = _names(standing.worker, steps, run.number)
    if policy.mode == "report":
        return "report" if standing.state == "stale" and "report" not in names else ""
    if standing.lives is None or standing.stranger:
        return ""
    if standing.lives:
        return _of_living(standing, run, steps, policy, now_ns)
    if "give up" in names:
        return _of_given_up(standing, run, names, policy)
    return _of_dead(run, names) if standing.state == "died" else ""


def is_parked(worker: Worker, run: Run) -> bool:
    """Was a worker told to park in the episode of a run, by us or by somebody else?"""
    runs = worker.runs()
    episode = _episode(runs, run.number)
    noted = [step.run for step in taken(worker) if step.name == "park"]
    return any(number in episode for number in (*noted, *_numbers(runs, "park")))


def _names(worker: Worker, steps: list[Step], run: int) -> set[str]:
    """Return the names of the steps that were taken in a run or, of some, in its episode."""
    episode = _episode(worker.runs(), run)
    return {
        step.name
        for step in steps
        if step.run == run or (step.name in _ONCE_AN_EPISODE and step.run in episode)
    }


def _episode(runs: Sequence[Run], number: int) -> range:
    """Return the numbers of the runs that make up the episode of a run."""
    ours = _numbers(runs, *_OUR_RUNS)
    begins = [run.number for run in runs if run.number not in ours]
    begin = max((each for each in begins if each <= number), default=0)
    return range(begin, min((each for each in begins if each > number), default=sys.maxsize))


def _numbers(runs: Sequence[Run], *kinds: str) -> list[int]:
    return [run.number for run in runs if run.kind in kinds]


def _of_living(standing: Standing, run: Run, steps: list[Step], policy: Policy, now_ns: int) -> str:
    of_run = {step.name: step.at_ns for step in steps if step.run == run.number}
    if "stop" in of_run:
        is_over = (now_ns - of_run["stop"]) / 1e9 >= policy.grace_secs
        return "kill" if is_over and "kill" not in of_run else ""
    if run.kind in _OUR_RUNS:
        silent_secs = (now_ns - standing.heard_ns) / 1e9 if standing.heard_ns else 0
        return "stop" if silent_secs >= policy.grace_secs else ""
    return "stop" if standing.state == "stale" else ""


def _of_dead(run: Run, names: set[str]) -> str:
    """A worker that died by itself is told of, not resumed: only silence is this policy's."""
    if run.kind == "ask":
        return "give up"
    if run.kind == "park":
        return ""
    return "ask" if "stop" in names and "ask" not in names else ""


def _of_given_up(standing: Standing, run: Run, names: set[str], policy: Policy) -> str:
    """A word of its own from after that (done, a question) is the worker's, and stands."""
    is_ours = standing.state == "error" and standing.status.text("by") == BY_US
    if not is_ours and standing.state != "died":
        return ""
    if not is_parked(standing.worker, run):
        return "park"
    may_respawn = policy.mode == "respawn" and standing.worker.card().respawns < policy.respawns
    return "respawn" if may_respawn else ""
