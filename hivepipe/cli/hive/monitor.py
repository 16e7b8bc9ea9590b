"""Command `hive monitor`: prints changes of the workers as they happen."""

import click

from hivepipe.cli.hive.here import here_hive, say_troubles
from hivepipe.cli.terminal import say
from hivepipe.errors import HivepipeError
from hivepipe.home import locate
from hivepipe.orchestrator import policy_steps, report
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.orchestrator import Orchestrator
from hivepipe.orchestrator.respawn_policy import Policy
from hivepipe.orchestrator.watch import Change, Watch
from hivepipe.orchestrator.worker_state import OVER, CheckedWorker
from hivepipe.redact import redact_text

# Status -> fields that are printed for people, on stderr.
_SHOWN = {
    "need_input": ("question", "context"),
    "error": ("error", "attempted", "suggestion"),
    "done": ("result", "notes"),
    "context_full": ("progress", "remaining"),
}


@click.command()
@click.option("--once", is_flag=True, help="Print the changes since the last monitor, and exit.")
@click.option(
    "--respawn",
    is_flag=True,
    help="Park a worker whose context is full and start a successor; both cost money.",
)
def monitor(once: bool, respawn: bool) -> None:
    """Follow the workers until Ctrl-C.

    Prints STATUS_CHANGE:<folder>/status.json when a worker changed its status, and
    PROCESS_ENDED:<folder> when its process ended. Explanations go to stderr.
    """
    hive = here_hive()
    watch = Watch(hive)
    try:
        for change in watch.unreported_changes() if once else watch.changes():
            try:
                _react(hive, change, respawn)
            except HivepipeError as error:
                _tell(str(error))
    except KeyboardInterrupt:
        return


def _react(hive: Hive, change: Change, respawn: bool) -> None:
    worker, status = change
    if status is not None:
        try:  # stored before the output, because an answer to the output causes a new status.json
            report.store_status(locate("."), hive, worker, status)
        finally:
            say(f"STATUS_CHANGE:{worker.status_file}")
    else:
        say(f"PROCESS_ENDED:{worker.folder}")
    orchestrator = Orchestrator(hive)
    (checked,) = orchestrator.check([worker])
    _explain(checked, change)
    if respawn and checked.state in ("context_full", "parking"):
        step = policy_steps.park_and_respawn(orchestrator, checked, Policy.of_settings())
        if step:
            _tell(f"{worker.id}: {step}")
    say_troubles(orchestrator)


def _explain(checked: CheckedWorker, change: Change) -> None:
    status, worker = checked.status, checked.worker
    if change.status is None:
        if checked.state in (*OVER, "cancelled"):
            _tell(f"{worker.id} {checked.state}: {checked.note}")
        return
    _tell(f"{worker.id}: {checked.state}")
    for name in _SHOWN.get(status.word, ()):
        if text := status.text(name):
            _tell(f"  {name}: {text}")
    for number, option in enumerate(status.texts("options"), 1):
        _tell(f"  {number}. {option}")
    for problem in status.problems:
        _tell(f"  {problem}")


def _tell(text: str) -> None:
    say(redact_text(text), err=True)
