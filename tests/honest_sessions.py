"""Sessions of an agent without loops, in which the guard must not intervene.

They are seeded, so that a failure can be repeated. The results are events as hooks receive them.
"""

import random
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

from tests.payloads import CWD, SESSION

Payload = dict[str, Any]
# Tool, input and response; a text as response is the error of a failed call.
Call = tuple[str, Payload, object]

FILES = [f"{CWD}/src/{name}.py" for name in ("checkout", "cart", "totals", "tax", "api", "models")]


def events(calls: Iterator[Call], session: str = SESSION) -> Iterator[Payload]:
    """Yield the events of these calls; None among the calls is a prompt of the user."""
    for number, call in enumerate(calls):
        common = {"session_id": session, "cwd": CWD, "permission_mode": "acceptEdits"}
        if call is None:
            yield {**common, "hook_event_name": "UserPromptSubmit", "prompt": f"Next: {number}"}
            continue
        tool, tool_input, response = call
        common |= {"tool_name": tool, "tool_input": tool_input, "tool_use_id": f"toolu_{number}"}
        yield {**common, "hook_event_name": "PreToolUse"}
        if isinstance(response, str):
            yield {**common, "hook_event_name": "PostToolUseFailure", "error": response}
        else:
            yield {**common, "hook_event_name": "PostToolUse", "tool_response": response}


def bash(command: str, stdout: str) -> Call:
    response = {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False}
    return "Bash", {"command": command, "description": "Run it"}, response


def read(path: str) -> Call:
    """Return a call that reads a file; its result never changes."""
    return "Read", {"file_path": path}, {"type": "text", "file": {"filePath": path, "content": "x"}}


def edit(path: str, number: int) -> Call:
    """Return an edit that is unlike every other one."""
    tool_input = {"file_path": path, "old_string": f"v{number}", "new_string": f"v{number + 1}"}
    return "Edit", tool_input, {"filePath": path, "structuredPatch": [number]}


def pytest_run(seed: random.Random, failing: bool) -> Call:
    """Return a test run; its duration differs each time."""
    if failing:
        command = {"command": "pytest -q", "description": "Run the tests"}
        return "Bash", command, f"Exit code 1\n1 failed, 41 passed in {seed.random():.2f}s"
    return bash("pytest -q", f"42 passed in {seed.random():.2f}s")


def clean(calls: int, seed: int = 1) -> Iterator[Payload]:
    """Yield a session with a number of calls that read, edit, test and commit."""
    return events(islice(_rounds(random.Random(seed)), calls))


def _rounds(seed: random.Random) -> Iterator[Call]:
    for number in count():
        path = seed.choice(FILES)
        if seed.random() < 0.3:
            yield "Grep", {"pattern": f"def pay_{number}", "path": CWD}, {"numFiles": number % 4}
        for _ in range(seed.randrange(1, 3)):
            yield read(seed.choice(FILES))
        for change in range(seed.randrange(1, 4)):
            yield edit(path, number * 10 + change)
        yield pytest_run(seed, failing=seed.random() < 0.4)
        if seed.random() < 0.5:
            yield bash("git status --short", f" M {path}")
        if seed.random() < 0.2:
            yield bash(f'git commit -am "Step {number}"', f"[main {number:07x}] Step {number}")


def two_hours(seed: int = 1) -> Iterator[Payload]:
    """Yield a session of editing, testing and long waiting for a slow CI."""
    return events(_hours(random.Random(seed)))


def _hours(seed: random.Random) -> Iterator[Any]:
    for push in range(12):
        if push % 4 == 0:
            yield None
        yield from islice(_rounds(random.Random(push)), 40)
        yield bash("git push", f"main -> main {push}")
        for look in range(10):  # ten minutes with the same result
            yield bash("sleep 60", "")
            yield bash(f"gh run view {push}", "in progress" if look < 9 else "completed")
        for age in range(6):
            yield bash("kubectl get pods", f"shop-{push}   1/1   Running   {age}m")
        yield bash("ls", "README.md src tests")
        yield "TodoWrite", {"todos": [{"content": f"Step {push}", "status": "completed"}]}, {}
