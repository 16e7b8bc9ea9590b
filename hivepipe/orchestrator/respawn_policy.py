"""The steps taken for a silent worker, and the rules for the next step.

    limit       a paid step is due, but the daily cost limit is reached
    report      the worker is only reported; the default, because other steps may cost money
    stop        its process group gets SIGTERM
    kill        its process group gets SIGKILL, if it has not ended within the grace time
    ask         it is resumed with "Are you still working?"
    give up     it is still silent, and hivepipe writes `error` into its status.json
    park        it is resumed once more, to write down what it learned
    respawn     a new worker gets the task

No step is taken for a worker that is done, asks a question, reports an error or is archived.

An episode begins with a run of the kind spawn, resume or answer. The later runs of the
steps `ask` and `park` belong to the same episode. `ask`, `give up`, `park` and `respawn` are taken
once per episode, the other steps once per run. Each step is written to `steps.jsonl` of the
worker's state before it is taken. Only an interrupted respawn is repeated, because it always starts
the same worker.
"""

import fcntl
import json
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple

from hivepipe.files.regular_file import read_text
from hivepipe.orchestrator.run import Run
from hivepipe.orchestrator.worker import Worker
from hivepipe.orchestrator.worker_state import OVER, CheckedWorker
from hivepipe.settings import DEFAULTS, number, variable

BY_US = "hivepipe"
_MODES = ("report", "ask", "respawn")
_OUR_RUNS = ("ask", "park")  # kinds of runs that continue an episode
_ONCE_AN_EPISODE = ("ask", "give up", "park", "respawn")


class Policy(NamedTuple):
    """The steps that are taken automatically; `grace_secs` is the time to wait for an answer."""

    mode: str  # one of _MODES
    grace_secs: float
    respawns: int
    limit_usd: float  # limit per day for the runs of ask, park and respawn

    @classmethod
    def of_settings(cls) -> "Policy":
        mode = variable("HIVEPIPE_HIVE_POLICY") or ""
        return cls(
            mode if mode in _MODES else DEFAULTS["HIVEPIPE_HIVE_POLICY"],
            number("HIVEPIPE_HIVE_GRACE_SECS"),
            int(number("HIVEPIPE_HIVE_RESPAWNS")),
            number("HIVEPIPE_HIVE_LIMIT_USD"),
        )


class Step(NamedTuple):
    """One step that was taken, and the number of the run in which it was taken."""

    name: str
    run: int
    at_ns: int


def steps_taken(worker: Worker) -> list[Step]:
    """Return the steps taken for a worker, oldest first; skip incomplete lines of steps.jsonl."""
    found = []
    try:
        lines = read_text(worker.state / "steps.jsonl", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            fields = json.loads(line)
            found.append(Step(str(fields["step"]), int(fields["run"]), int(fields["at_ns"])))
        except (ValueError, KeyError, TypeError):
            continue
    return found


def record_step(worker: Worker, name: str, run: int) -> bool:
    """Record a step before it is taken. Return False if it was recorded before."""
    line = json.dumps({"step": name, "run": run, "at_ns": time.time_ns()})
    with (worker.state / "steps.jsonl").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # a tick and a monitor may run at the same time
        if name in _names(worker, steps_taken(worker), run):
            return False
        file.seek(0)
        break_off = "" if file.read()[-1:] in ("", "\n") else "\n"  # a full disk may cut a line
        file.write(f"{break_off}{line}\n")
    return True


def next_step(checked: CheckedWorker, steps: list[Step], policy: Policy, now_ns: int) -> str:
    """Return the step that is due for a worker, or ""."""
    run = checked.run
    if run is None:
        return ""
    names = _names(checked.worker, steps, run.number)
    if policy.mode == "report":
        return "report" if checked.state == "stale" and "report" not in names else ""
    if checked.lives is None or checked.foreign_pid:
        return ""
    if checked.lives:
        return _of_living(checked, run, steps, policy, now_ns)
    if "give up" in names:
        return _of_given_up(checked, run, names, policy)
    return _of_dead(run, names) if checked.state in OVER else ""


def is_parked(worker: Worker, run: Run) -> bool:
    """Tell whether the policy or a user has parked a worker in the episode of this run."""
    runs = worker.runs()
    episode = _episode(runs, run.number)
    noted = [step.run for step in steps_taken(worker) if step.name == "park"]
    return any(number in episode for number in (*noted, *_numbers(runs, "park")))


def _names(worker: Worker, steps: list[Step], run: int) -> set[str]:
    """Return the steps of a run, and those steps of its episode that are taken once per episode."""
    episode = _episode(worker.runs(), run)
    return {
        step.name
        for step in steps
        if step.run == run or (step.name in _ONCE_AN_EPISODE and step.run in episode)
    }


def _episode(runs: Sequence[Run], number: int) -> range:
    ours = _numbers(runs, *_OUR_RUNS)
    begins = [run.number for run in runs if run.number not in ours]
    begin = max((each for each in begins if each <= number), default=0)
    return range(begin, min((each for each in begins if each > number), default=sys.maxsize))


def _numbers(runs: Sequence[Run], *kinds: str) -> list[int]:
    return [run.number for run in runs if run.kind in kinds]


def _of_living(
    checked: CheckedWorker, run: Run, steps: list[Step], policy: Policy, now_ns: int
) -> str:
    of_run = {step.name: step.at_ns for step in steps if step.run == run.number}
    if "stop" in of_run:
        is_over = (now_ns - of_run["stop"]) / 1e9 >= policy.grace_secs
        return "kill" if is_over and "kill" not in of_run else ""
    if run.kind in _OUR_RUNS:
        silent_secs = (now_ns - checked.last_active_ns) / 1e9 if checked.last_active_ns else 0
        return "stop" if silent_secs >= policy.grace_secs else ""
    return "stop" if checked.state == "stale" else ""


def _of_dead(run: Run, names: set[str]) -> str:
    """Return the next step for a dead worker, or "".

    The step `ask` is taken once, and only if hivepipe stopped the worker.
    """
    if run.kind == "ask":
        return "give up"
    if run.kind == "park":
        return ""
    return "ask" if "stop" in names and "ask" not in names else ""


def _of_given_up(checked: CheckedWorker, run: Run, names: set[str], policy: Policy) -> str:
    """Return the next step after `give up`, or "" if the worker has written a status after it."""
    is_ours = checked.state == "error" and checked.status.text("by") == BY_US
    if not is_ours and checked.state not in OVER:
        return ""
    if not is_parked(checked.worker, run):
        return "park"
    may_respawn = policy.mode == "respawn" and checked.worker.card().respawns < policy.respawns
    return "respawn" if may_respawn else ""
