"""The process that asks: a request as JSON on stdin, one JSON object on stdout.

`python -I -m hivepipe.summaries.asker`, started by `call.py` alone. It lives for one question: the
library takes 100 MB and seconds to import, which no worker should carry about. For `claude -p` it
becomes that program, whose environment alone then holds the credential.
"""

import json
import os
import signal
import sys
import tempfile
from typing import Any, NoReturn

from hivepipe import core_dumps
from hivepipe.programs import find_program
from hivepipe.settings import inherited

Request = dict[str, Any]


def main() -> None:
    """Ask, and say what became of it."""
    core_dumps.close_memory()
    request: Request = json.loads(sys.stdin.buffer.read())
    signal.alarm(int(request["ends_after_secs"]))  # should nobody be left to kill it
    if request["kind"] == "claude":
        program = find_program("claude")
        if program:
            become_claude(program, request)
        reason = "there is no `claude` on PATH"
        said = {"requests": 0, "failure": "refused", "reason": reason}
    else:
        from hivepipe.summaries.over_http import ask_over_http  # noqa: PLC0415  claude needs none of it

        said = ask_over_http(request)
    sys.stdout.write(json.dumps(said))
    sys.stdout.flush()
    os._exit(0)  # connections of the library may linger


def become_claude(program: str, request: Request) -> NoReturn:
    """Turn into `claude -p` with its hooks off and its prompt on stdin."""
    with tempfile.TemporaryFile() as file:  # a pipe may hold less, and nobody is left to fill it
        file.write(f"{request['instructions']}\n{request['text']}".encode())
        file.seek(0)
        os.dup2(file.fileno(), 0)
    environment = inherited() | {
        b"HIVEPIPE_NESTED": b"1",
        b"CLAUDE_CODE_OAUTH_TOKEN": request["secret"].encode(),
    }
    os.execve(program, [program, *claude_arguments(request)], environment)


def claude_arguments(request: Request) -> list[str]:
    """Return what `claude` is told: nothing of the user's, no tools, no transcript, a price."""
    return [
        "-p",
        "--model",
        request["model"],
        "--output-format",
        "json",
        "--json-schema",
        json.dumps(request["schema"]),
        "--no-session-persistence",
        "--setting-sources",
        "",
        "--settings",
        '{"disableAllHooks": true}',
        "--strict-mcp-config",
        "--tools",
        "",
        "--max-budget-usd",
        f"{request['dollars']:.4f}",
    ]


if __name__ == "__main__":
    main()
