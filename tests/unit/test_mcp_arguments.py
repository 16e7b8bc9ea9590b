"""Texts that JSON can express and UTF-8 cannot are refused by name, in each argument."""

import json

import pytest

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
