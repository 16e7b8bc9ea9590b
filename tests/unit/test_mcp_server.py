"""The arguments of MCP's tools, and the server while pip replaces the package."""

import json

import pytest
from click.testing import CliRunner

from hivepipe.cli import mcp as command
from hivepipe.cli.main import main
from hivepipe.mcp_server.answer import Answer, text_of
from hivepipe.mcp_server.arguments import ArgumentError, checked
from hivepipe.mcp_server.tool_table import TOOLS

TEXTS = [
    (tool, name)
    for tool, each in TOOLS.items()
    for name, argument in each.arguments.items()
    if not argument.most
]


@pytest.mark.parametrize(("tool", "name"), TEXTS)
def test_a_lone_surrogate_is_refused(tool: str, name: str) -> None:
    arguments = TOOLS[tool].arguments
    needed = {each: "cart" for each, argument in arguments.items() if argument.default is None}
    with pytest.raises(ArgumentError, match=f"{name} has a lone surrogate"):
        checked(arguments, {**needed, name: "cart \ud800"})


def test_no_answer_names_a_next_page_that_is_refused() -> None:
    answer = Answer([{"row": number} for number in range(100)], {}, 20)
    ends = [json.loads(text_of("rows", answer, skip, 70).splitlines()[-1]) for skip in (50, 51, 90)]
    more = "left out: no further page can be read"
    assert ends == [{"rows": 20, "next": {"skip": 70}}, {"rows": 20, "more": more}, {"rows": 10}]


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
