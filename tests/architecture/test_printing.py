"""Commands print through hivepipe.cli.terminal; ruff bans what click and rich offer beside it."""

import re
from pathlib import Path

CLI = Path(__file__).resolve().parents[2] / "hivepipe" / "cli"
WAYS_OUT = {"terminal.py", "rich_terminal.py", "pager.py"}
FILES = sorted(path for path in CLI.rglob("*.py") if path.name not in WAYS_OUT)
# Writing past it, and texts without a margin: only what is ours may begin a line.
PAST_IT = re.compile(r"sys\.std(out|err)|sys\.__std|os\.write\(|raw_stream|margin=\"\"|noqa: T201")
OWN = {"completion.py"}  # a shell script of click's


def test_no_command_prints_past_it() -> None:
    assert {path.name for path in FILES if PAST_IT.search(path.read_text())} == OWN
