"""Run a command to its end and return its exit code and output."""

import subprocess
from typing import Any

LONGEST_SECS = 90


def outcome_of(
    command: Any, env: Any = None, cwd: Any = None, **options: Any
) -> "subprocess.CompletedProcess[Any]":
    """Run a command with options of `subprocess.run`; return any exit code, and output as text."""
    usual = {"capture_output": True, "text": True, "check": False, "timeout": LONGEST_SECS}
    return subprocess.run(command, env=env, cwd=cwd, **(usual | options))
