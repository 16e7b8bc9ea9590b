"""Recognize lines of commands that Claude Code executes itself, without the model."""

import re

# A command of a plugin or a project has the same form, but its line is a prompt.
_LOCAL = re.compile(
    r"<local-command-|<command-name>/(agents|clear|compact|config|context|cost|doctor|effort|exit"
    r"|export|help|hooks|login|logout|mcp|memory|model|permissions|plugin|quit|rename|resume"
    r"|rewind|status|usage)<"
)


def is_local_command(words: str) -> bool:
    """Tell whether a user's text is a local command, or the output of one."""
    return _LOCAL.match(words) is not None
