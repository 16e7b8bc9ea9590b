"""The cost of the status line: the whole process over a bare interpreter, in turns.

The file of the stack has the maximum number of sessions (hivepipe.worker.status_line_file).
"""

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from figures import Figure, conclude, parser
from hook_cost import BARE, Setting, time_process_ms

from hivepipe.hook.status_line import FILE
from hivepipe.stack import hook_copy
from hivepipe.worker.status_line_file import MOST_SESSIONS

AT_MOST = 1.5  # most starts of a bare interpreter


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    arguments = parser(__doc__)
    arguments.add_argument("--runs", type=int, default=100, help="starts of each (100)")
    options = arguments.parse_args()
    os.umask(0o077)
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory(prefix="hp", dir="/tmp") as folder:
        setting = Setting(os.path.realpath(folder))
        Path(setting.home, FILE).write_text(json.dumps(kept()))
        said = json.dumps({"session_id": "s0", "cwd": setting.project, "version": "2.1.330"})
        command = [hook_copy.launcher(), "statusline"]
        for _ in range(options.runs):
            ours.append(time_process_ms(command, said.encode(), setting.environment))
            bare.append(time_process_ms(BARE, said.encode(), setting.environment))
    ratio = statistics.median(ours) / statistics.median(bare)
    conclude(options, [Figure("status line", ratio, "x bare Python", AT_MOST)])


def kept() -> dict[str, object]:
    """Return the largest file that the stack writes."""
    session = {"usd": 1.25, "tokens": 90_000, "window": 200_000, "waits": True}
    session["cache_until"] = time.time() + 60
    sessions = {f"s{number}": session for number in range(MOST_SESSIONS)}
    day = time.strftime("%Y-%m-%d")
    return {"v": 1, "day": day, "today_usd": 4.5, "alerts": 1, "sessions": sessions}


if __name__ == "__main__":
    main()
