"""The process that asks a provider: it reads a JSON request from stdin and prints a JSON object.

`python -I -m hivepipe.summaries.asker`, started by `call.py` only. The process lives for one
question, because the library takes 100 MB and seconds to import, too much for a worker. For `claude
-p` the process replaces itself by that program, so that the credential is in the environment of
that program only.
"""

import gc
import json
import os
import signal
import sys
import tempfile
from typing import Any, NoReturn

from hivepipe.files import core_dumps
from hivepipe.programs import find_program
from hivepipe.settings import inherited

Request = dict[str, Any]


def main() -> None:
    """Ask the provider that stdin names, and print the reply as JSON."""
    gc.disable()  # saves a sixth of the library's import; one question leaves little garbage
    core_dumps.close_memory()
    request: Request = json.loads(sys.stdin.buffer.read())
    signal.alarm(int(request["ends_after_secs"]))  # ends the process if its parent was killed
    if request["kind"] == "claude":
        program = find_program("claude")
        if program:
            become_claude(program, request)
        reason = "`claude` is not on PATH"
        answer = {"requests": 0, "failure": "refused", "reason": reason}
    else:
        from hivepipe.summaries.over_http import ask_over_http  # noqa: PLC0415  not needed for claude

        answer = ask_over_http(request)
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)  # connections of the library may still be open


def become_claude(program: str, request: Request) -> NoReturn:
    """Replace this process by `claude -p`, without hooks, with the prompt on stdin."""
    # A file, because a pipe may be too small for the whole prompt
    with tempfile.TemporaryFile() as file:
        file.write(f"{request['instructions']}\n{request['text']}".encode())
        file.seek(0)
        os.dup2(file.fileno(), 0)
    environment = inherited() | {
        b"HIVEPIPE_NESTED": b"1",
        b"CLAUDE_CODE_OAUTH_TOKEN": request["secret"].encode(),
    }
    os.execve(program, [program, *claude_arguments(request)], environment)


def claude_arguments(request: Request) -> list[str]:
    """Return the arguments of `claude`: no user settings, no tools, no transcript, a budget."""
    return [
        *("-p", "--no-session-persistence", "--strict-mcp-config"),
        *("--model", request["model"]),
        *("--output-format", "json"),
        *("--json-schema", json.dumps(request["schema"])),
        *("--setting-sources", ""),
        *("--settings", '{"disableAllHooks": true}'),
        *("--tools", ""),
        *("--max-budget-usd", f"{request['dollars']:.4f}"),
    ]


if __name__ == "__main__":
    main()
