"""The cost of archiving a session: time over that of redaction, I/O over the session's size.

    python benchmarks/archive.py [--mb 100] [--turns 100] [--check]

One transcript is archived at once. Another of 5 MB grows turn by turn, as the slow worker sees it.
Bytes are those of /proc/self/io. Both are measured without secrets, and with a secret in every
hundredth line. Each secret is learned, and the settled archive is read twice more to remove it.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from figures import Figure, conclude, parser
from redaction import session

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for the import of tests.archive_scene

from hivepipe.redact import redact_line  # noqa: E402
from tests.archive_scene import Scene  # noqa: E402


class Bounds(NamedTuple):
    """The bounds of one kind of session."""

    secrets_in_100: int  # secrets in 100 lines
    over_redaction: float
    read: float
    written: float


# By the end of a figure's name. Real sessions have fewer secrets than one in a hundred lines.
BOUNDS = {"": Bounds(0, 2.0, 1.2, 1.2), ", many secrets": Bounds(1, 3.0, 3.5, 1.2)}
GROWN_BYTES = 5_000_000
SEED = 1


def redaction_secs(lines: list[bytes]) -> float:
    """Redact the lines; return the processor time in seconds."""
    begun = time.process_time()
    for line in lines:
        redact_line(line)
    return time.process_time() - begun


def in_one_go(folder: Path, lines: list[bytes]) -> float:
    """Archive the lines at once; return the processor time in seconds."""
    scene = Scene(folder)
    scene.path.write_bytes(b"".join(lines))
    begun = time.process_time()
    archived = scene.extend(settled=True, claude_folder=f"{folder}/.claude")
    spent = time.process_time() - begun
    if archived != len(lines):
        raise SystemExit(f"{archived} of {len(lines)} lines archived")
    return spent


def turn_by_turn(folder: Path, lines: list[bytes], turns: int) -> tuple[float, float]:
    """Archive the lines turn by turn; return bytes read and written, divided by their size."""
    scene = Scene(folder)
    each = max(len(lines) // turns, 1)
    read, written = 0, 0
    for start in range(0, len(lines), each):
        with scene.path.open("ab") as file:
            file.writelines(lines[start : start + each])
        before = io_bytes()
        scene.extend(settled=start + each >= len(lines), claude_folder=f"{folder}/.claude")
        after = io_bytes()
        read += after[0] - before[0]
        written += after[1] - before[1]
    size = scene.path.stat().st_size
    return read / size, written / size


def io_bytes() -> tuple[int, int]:
    """Return the number of bytes that this process has read and written, by any call."""
    said = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(said["rchar"]), int(said["wchar"])


def measured(kind: str, bounds: Bounds, size_mb: int, turns: int) -> list[Figure]:
    """Measure one kind of session."""
    lines = list(session(SEED, size_mb * 1_000_000, bounds.secrets_in_100))
    grown = list(session(SEED, GROWN_BYTES, bounds.secrets_in_100))
    with tempfile.TemporaryDirectory() as folder:
        alone = redaction_secs(lines)
        whole = in_one_go(Path(folder, "whole"), lines)
        read, written = turn_by_turn(Path(folder, "turns"), grown, turns)
    size = sum(map(len, lines)) / 1e6
    print(
        f"{size:.0f} MB{kind}, archived in {whole:.1f} s of one processor, "
        f"redacted in {alone:.1f} s"
    )
    name = f"archive of {turns} turns{kind}"
    return [
        Figure(f"archive{kind}", size / whole, "MB a second of one processor"),
        Figure(f"archive{kind}", whole / alone, "x redaction alone", bounds.over_redaction),
        Figure(f"{name}, read", read, "x the session", bounds.read),
        Figure(f"{name}, written", written, "x the session", bounds.written),
    ]


def main() -> None:
    """Measure, print the figures, and check their bounds."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument("--mb", type=int, default=100)
    arguments_of.add_argument("--turns", type=int, default=100)
    options = arguments_of.parse_args()
    figures: list[Figure] = []
    for kind, bounds in BOUNDS.items():
        figures += measured(kind, bounds, options.mb, options.turns)
    conclude(options, figures)


if __name__ == "__main__":
    main()
