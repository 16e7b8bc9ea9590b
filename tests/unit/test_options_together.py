"""Options that contradict each other are refused, and with --json stdout is one JSON object."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main


@pytest.mark.parametrize(
    "words",
    [
        "migrate --undo --dry-run --yes",
        "trust --json --yes",
        "trust --json --remove",
        "disk --prune --log",
        "team store database --json",
        "transcript last --markdown --html",
        "move-home --in-tree --from /shop",
        "init --local --user",
    ],
)
def test_a_contradiction_is_wrong_usage(home: Path, words: str) -> None:
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 64, done.output
    assert "exclude" in done.stderr or "with --json no question" in done.stderr


class Server:
    """In place of a team's PostgreSQL."""

    said: ClassVar = {
        "archive_store": "none",
        "set_archive_store": None,
        "set_policy": {"prompts": 3},
        "team_policies": {"*": "metadata"},
    }

    def execute(self, _sql: str) -> "Server":
        return self

    def fetchone(self) -> dict[str, int]:
        return {"segments": 0, "bytes": 0, "leftovers": 0}


@pytest.mark.parametrize(
    ("module", "words", "told"),
    [
        ("archives", "team store database --yes --json", "price: "),
        ("member", "team policy * metadata --team --json", "removed: prompts: 3 rows"),
    ],
)
def test_what_is_said_beside_an_object_is_no_part_of_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, module: str, words: str, told: str
) -> None:
    @contextmanager
    def administrator() -> Iterator[Server]:
        yield Server()

    def one(_connection: Server, sql: str, *_values: Any) -> Any:
        return Server.said[sql.removeprefix("SELECT hivepipe.").partition("(")[0]]

    monkeypatch.setattr(f"hivepipe.cli.team.{module}.administrator", administrator)
    monkeypatch.setattr(f"hivepipe.cli.team.{module}.one", one)
    done = CliRunner().invoke(main, words.split())
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["schema"] == 1
    assert told in done.stderr
