"""The server: calls a tool, and formats its rows or its error as text."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Any

from hivepipe.errors import HivepipeError
from hivepipe.home import Place
from hivepipe.mcp_server.answer import short, text_of
from hivepipe.mcp_server.arguments import ArgumentError, checked
from hivepipe.mcp_server.protocol import Outcome, Served
from hivepipe.mcp_server.tool_call import parse_call
from hivepipe.mcp_server.tool_table import INSTRUCTIONS, TOOLS, declared
from hivepipe.text.visible import printable

_LONGEST_ERROR = 1000


def tool_server(here: Callable[[], Place]) -> Served:
    """Return the server of the tools. `here` returns the place whose home is read first."""
    return Served(
        version("hivepipe"), INSTRUCTIONS, declared(), lambda name, given: call(here(), name, given)
    )


def call(here: Place, name: str, given: Mapping[str, Any]) -> Outcome:
    """Return the answer of a tool, or its error as text. Raise KeyError for an unknown tool."""
    tool = TOOLS[name]
    try:
        parsed = parse_call(checked(tool.arguments, given), here)
        answer = import_module(f"hivepipe.mcp_server.tools.{name}").answer(parsed)
        most = tool.arguments["skip"].most
        return Outcome(text_of(tool.title, answer, parsed.number("skip"), most))
    except (ArgumentError, HivepipeError) as error:
        problem = str(error)
    except OSError as error:
        problem = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except Exception as error:  # noqa: BLE001  damaged data must not end the server
        problem = f"this cannot be read: {type(error).__name__}: {error}"
    return Outcome(short(f"hivepipe: {printable(problem)}", _LONGEST_ERROR), failed=True)
