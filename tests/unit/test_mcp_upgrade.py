"""The command `mcp` while pip replaces the package."""

import json

import pytest
from click.testing import CliRunner

from hivepipe.cli import mcp as command
from hivepipe.cli.main import main


@pytest.mark.parametrize("installed", ["", "9.9.9"])
def test_a_server_answers_itself_in_the_middle_of_an_upgrade(
    monkeypatch: pytest.MonkeyPatch, installed: str
) -> None:
    passed_on: list[bytes] = []
    monkeypatch.setattr(command, "installed", lambda: installed)
    monkeypatch.setattr(command, "_answer_by_new_version", passed_on.append)
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    # click keeps the help option of a command's first call.
    done = CliRunner().invoke(command.mcp, input=ping, **main.context_settings)
    assert done.exit_code == 0, done.output
    if installed:
        assert len(passed_on) == 1
        assert done.stdout == ""
    else:
        assert passed_on == []
        assert json.loads(done.stdout)["result"] == {}
