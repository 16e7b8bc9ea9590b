"""Command `mcp`: the recorded sessions as tools, over stdin and stdout."""

import sys

import click

from hivepipe.cli.terminal import document, say_json
from hivepipe.home import locate
from hivepipe.mcp_server.protocol import answer_to, messages
from hivepipe.mcp_server.server import tool_server
from hivepipe.stack.installed import installed


@click.command()
def mcp() -> None:
    """Serve the recorded sessions of all your projects to Claude, until its input ends.

    The server speaks the Model Context Protocol. Its tools only read: search, timeline, session,
    costs, files. `claude mcp add --scope user hivepipe -- hivepipe mcp` adds it to Claude Code.
    """
    served = tool_server(lambda: locate("."))
    with document():
        for raw in messages(sys.stdin.buffer):
            if installed() not in (served.version, ""):
                _answer_by_new_version(raw)
            elif (answer := answer_to(served, raw)) is not None:
                say_json(answer)


def _answer_by_new_version(raw: bytes) -> None:
    """After an upgrade, answer in a new process, so that modules of two versions do not mix."""
    import subprocess  # noqa: PLC0415  a fast start

    from hivepipe.programs import module  # noqa: PLC0415

    words = module("hivepipe.cli.main", "mcp")
    subprocess.run(words, input=raw or b"\n", check=False)
