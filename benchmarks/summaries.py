"""The delay of a checkpoint while many sessions are summarised, over that without summaries.

    python benchmarks/summaries.py [--sessions 500] [--check]

It runs tests/faults/test_summary_load.py, which starts a fake language model and two stacks, and
reads the ratios of that test. Sessions end at the same time, their summaries hang at the model or
wait in the queue, and checkpoints come one after another.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from figures import Figure, conclude, parser

ROOT = Path(__file__).resolve().parent.parent
TEST = "tests/faults/test_summary_load.py"
MOST_P50, MOST_P99 = 1.25, 1.5


def ratios(sessions: int) -> dict[str, float]:
    """Run the test with this many sessions; return its measurements."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        kept = (f"--junitxml={report}", "-o", "junit_family=xunit1")  # xunit1 contains properties
        command = [sys.executable, "-m", "pytest", "-q", "-s", TEST, *kept]
        environment = {**os.environ, "HIVEPIPE_TEST_ROUNDS": str(sessions)}
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
        found = ElementTree.parse(report).iter("property")
        return {each.attrib["name"]: float(each.attrib["value"]) for each in found}


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument("--sessions", type=int, default=500)
    options = arguments_of.parse_args()
    found = ratios(options.sessions)
    what = f"checkpoint while {options.sessions} sessions are summarised"
    beside = "x without summaries"
    figures = [
        Figure(f"{what}, p50", found["p50_ratio"], beside, MOST_P50),
        Figure(f"{what}, p99", found["p99_ratio"], beside, MOST_P99),
    ]
    conclude(options, figures)


if __name__ == "__main__":
    main()
