"""Commands print through hivepipe.cli.terminal; ruff bans what click and rich offer beside it."""

import re
from pathlib import Path

import pytest

CLI = Path(__file__).resolve().parents[2] / "hivepipe" / "cli"
WAYS_OUT = {"terminal.py", "rich_terminal.py", "pager.py"}
FILES = sorted(path for path in CLI.rglob("*.py") if path.name not in WAYS_OUT)
# Writing past it, and texts without a margin: only what is ours may begin a line.
PAST_IT = re.compile(r"sys\.std(out|err)|sys\.__std|os\.write\(|raw_stream|margin=\"\"|noqa: T201")
OWN = {"completion.py"}  # a shell script of click's


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CLI)))
def test_no_command_prints_past_it(path: Path) -> None:
    found = [line for line in path.read_text().splitlines() if PAST_IT.search(line)]
    assert bool(found) == (path.name in OWN), found
