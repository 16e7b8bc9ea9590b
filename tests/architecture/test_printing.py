"""Commands print only through hivepipe.cli.terminal; ruff bans the functions of click and rich."""

import re
from pathlib import Path

CLI = Path(__file__).resolve().parents[2] / "hivepipe" / "cli"
WAYS_OUT = {"terminal.py", "rich_terminal.py", "pager.py"}
FILES = sorted(path for path in CLI.rglob("*.py") if path.name not in WAYS_OUT)
# Ways around the module, and texts without a margin, which only hivepipe's own lines may have.
PAST_IT = re.compile(r"sys\.std(out|err)|sys\.__std|os\.write\(|raw_stream|margin=\"\"|noqa: T201")
OWN = {"completion.py"}  # prints a shell script of click


def test_no_command_prints_without_the_terminal_module() -> None:
    assert {path.name for path in FILES if PAST_IT.search(path.read_text())} == OWN
