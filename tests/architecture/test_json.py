"""Every command that prints a listing or an entry has --json."""

import ast
import inspect
import sys

import click

from tests.architecture.test_docs import CALLABLE

# reasons of the commands without it
WITHOUT = {
    "it acts and reports that in a line or two": (
        *("init", "uninstall", "move-home", "off", "on", "up", "down", "restart"),
        *("summaries enable", "summaries disable", "credentials set", "credentials remove"),
        *("memory forget", "archive rebuild-index", "failed retry", "failed discard"),
        *("task progress", "task assign", "task done", "task cancel", "task reopen"),
        *("profile add", "profile put", "profile remove"),
        *("hive init", "hive resume", "hive answer", "hive park"),
        *("team init", "team join", "team leave", "team revoke"),
        *("team archive-key",),
        *("hive archive", "hive delete", "hive projects add", "hive projects remove"),
    ),
    "it prints text for another program": (
        *("completion", "redact", "root", "home", "url", "rq", "hive monitor", "export"),
        *("mcp", "statusline", "team export"),
    ),
    "it runs until it is stopped": ("demo", "team page", "web"),
}
REASONED = {path for paths in WITHOUT.values() for path in paths}
PRINTERS = {"show_table", "show_entries", "show_entry", "show_lines"}


def has_json(command: click.Command) -> bool:
    return any("--json" in param.opts for param in command.params)


def called_by(command: click.Command) -> set[str]:
    """Return the names that a command uses, in its function and in functions of its module."""
    function = inspect.unwrap(command.callback)  # type: ignore[arg-type]
    source = inspect.getsource(sys.modules[function.__module__])
    bodies = {
        node.name: {
            each.id for line in node.body for each in ast.walk(line) if isinstance(each, ast.Name)
        }
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef)
    }
    waiting, seen = [function.__name__], set[str]()
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += bodies.get(name, ())
    return seen


def test_a_command_has_json_or_a_reason_why_not() -> None:
    without = {path for path, command in CALLABLE.items() if not has_json(command)}
    assert without - REASONED == set(), "add json_option, or a reason here in WITHOUT"
    assert REASONED - without == set(), "remove it here from WITHOUT"


def test_a_command_that_prints_a_listing_or_an_entry_has_json() -> None:
    found = {path for path, command in CALLABLE.items() if called_by(command) & PRINTERS}
    without = {path for path in found if not has_json(CALLABLE[path])}
    assert without <= {"up"}, "add json_option"  # `up` prints the processes itself
    assert {"sessions", "agent show", "task list", "costs", "hive projects"} <= found
