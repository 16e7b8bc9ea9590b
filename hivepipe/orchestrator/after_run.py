"""The program that a runner executes after its Claude Code has ended.

    python -I -m hivepipe.orchestrator.after_run FOLDER STATE

The program holds the worker's lock. The program repairs the transcript, records the cost of the run
and updates the store. If the program is killed, the next `hivepipe hive check` does the rest.
"""

import sys
from pathlib import Path

from hivepipe.config.config_file import load_and_use
from hivepipe.errors import HiveError, HivepipeError
from hivepipe.orchestrator import costs, records
from hivepipe.orchestrator.folder import Hive
from hivepipe.orchestrator.transcript import repair_transcript
from hivepipe.orchestrator.worker import Worker
from hivepipe.redact.configured import use_rules


def main() -> None:
    """Finish the last run of a worker."""
    place, _ = load_and_use()  # the runner passed on HIVEPIPE_HOME
    use_rules(place.home)
    folder = Path(sys.argv[1])
    hive = Hive(folder.parents[1], place.home)
    worker = hive.new_worker(folder.name)
    if sys.argv[2:]:  # a runner of 1.0.0 does not pass it
        worker = Worker(folder, Path(sys.argv[2]))
    run = worker.last_run()
    if run is None:
        return
    try:
        repair_transcript(worker, run.offset)
    except HiveError as error:
        print(error, file=sys.stderr)  # noqa: T201  runner.log
    costs.record_cost(worker, run)
    try:
        records.record(hive, [worker])
    except HivepipeError as error:
        print(error, file=sys.stderr)  # noqa: T201  runner.log


if __name__ == "__main__":
    main()
