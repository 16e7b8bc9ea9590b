"""Recognize lines of commands that Claude Code executes itself, without the model."""

import re

# The line of a skill, or of another command that is a prompt, begins with `<command-message>`.
# /goal and /plan continue with their arguments as a prompt.
_LOCAL = re.compile("<local-command-|<command-name>/(?!(goal|plan)<)")


def is_local_command(words: str) -> bool:
    """Tell whether a user's text is a local command, or the output of one."""
    return _LOCAL.match(words) is not None


def is_shell_command(words: str) -> bool:
    """Tell whether a user's text is a shell command (`!`), or the output of one."""
    return words.startswith(("<bash-input>", "<bash-stdout>", "<bash-stderr>"))
