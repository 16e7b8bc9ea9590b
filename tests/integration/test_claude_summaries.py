"""Summaries by `claude -p`, with a stand-in that refuses what the real program refuses."""

import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests.conftest import Home, Server, until
from tests.llm_server import SUMMARY
from tests.summary_scene import CANARY, SECRET_IN_WORDS, SESSION, Scene, processes_with

STAND_IN = '''#!{python} -I
"""claude -p, as far as a summary needs it."""
import json, os, subprocess, sys, time
from pathlib import Path

folder = Path({folder!r})
VALUES = ("--model", "--output-format", "--json-schema", "--settings", "--tools")
VALUES += ("--max-budget-usd", "--setting-sources")
SWITCHES = ("-p", "--no-session-persistence", "--strict-mcp-config")
given, words = {{}}, sys.argv[1:]
while words:
    word = words.pop(0)
    if word in VALUES:
        given[word] = words.pop(0)
    elif word in SWITCHES:
        given[word] = True
    else:
        sys.exit(f"error: unknown option {{word!r}}")
if os.environ.get("CLAUDECODE"):
    sys.exit("error: claude cannot be started inside claude")
schema = json.loads(given["--json-schema"])
if schema["type"] != "object":
    sys.exit("error: --json-schema is not valid")
prompt = sys.stdin.read()
seen = {{"given": given, "env": dict(os.environ), "prompt": prompt, "cwd": os.getcwd(),
        "leads": os.getpgid(0) == os.getpid()}}
(folder / "seen.json").write_text(json.dumps(seen))
mode = (folder / "mode").read_text()
if mode == "hang":
    children = [subprocess.Popen(["sleep", "300"]) for _ in range(2)]
    (folder / "pids").write_text(json.dumps([os.getpid(), *(child.pid for child in children)]))
    time.sleep(300)
result = {{"type": "result", "subtype": "success", "is_error": False, "num_turns": 2,
          "total_cost_usd": 0.0123, "structured_output": {summary!r},
          "modelUsage": {{"claude-haiku-5-5": {{"inputTokens": 900, "outputTokens": 80}}}}}}
if mode == "auth":
    result |= {{"is_error": True, "api_error_status": 401, "result": "Invalid bearer token"}}
    del result["structured_output"]
print(json.dumps(result))
sys.exit(mode == "auth")
'''


class Claude:
    """The stand-in and its recorded input."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        path = folder / "claude"
        text = STAND_IN.format(python=sys.executable, folder=str(folder), summary=SUMMARY)
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        self.mode("ok")

    def mode(self, name: str) -> None:
        (self.folder / "mode").write_text(name)

    @property
    def seen(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "seen.json").read_text())
        return found

    @property
    def pids(self) -> list[int]:
        path = self.folder / "pids"
        return list(json.loads(path.read_text())) if path.exists() else []


@pytest.fixture
def claude(private_home: Home) -> Claude:
    made = Claude(private_home.root / "bin")
    private_home.env["PATH"] = f"{made.folder}:{private_home.env['PATH']}"
    private_home.env["EXECUTE_ASKER"] = "1"  # It becomes `claude`, whose environment is tested.
    return made


@pytest.fixture
def scene(private_home: Home, redis_server: Server, claude: Claude) -> Iterator[Scene]:
    made = Scene(private_home, redis_server)
    yield made
    made.close()


def agree(scene: Scene, **settings: Any) -> None:
    scene.configure(**settings)
    scene.keep("CLAUDE_CODE_OAUTH_TOKEN")
    scene.command("summaries", "enable", "--yes")


def test_the_call_of_claude_and_its_environment(scene: Scene, claude: Claude) -> None:
    agree(scene)
    scene.write()
    scene.start()
    scene.end()
    row = scene.wait_for_summary()
    assert (row["kind"], row["provider"], row["model"]) == ("llm", "claude", "claude-haiku-5-5")
    assert json.loads(row["open_ends"]) == SUMMARY["open_ends"]
    assert (row["input_tokens"], row["output_tokens"]) == (900, 80)
    assert row["cost_usd"] == pytest.approx(0.0123)
    assert scene.spent()["today"]["cost_usd"] == pytest.approx(0.0123)

    seen = claude.seen
    given, env = seen["given"], seen["env"]
    assert json.loads(given.pop("--json-schema"))["required"] == list(SUMMARY)
    # the model is dearer than claude-haiku-5-5
    assert 0.03 < float(given.pop("--max-budget-usd")) < 0.5
    assert given == {
        "-p": True,
        "--model": "claude-haiku-5-5",
        "--output-format": "json",
        "--no-session-persistence": True,
        "--setting-sources": "",
        "--settings": '{"disableAllHooks": true}',
        "--strict-mcp-config": True,
        "--tools": "",
    }
    assert (env["HIVEPIPE_NESTED"], env["CLAUDE_CODE_OAUTH_TOKEN"]) == ("1", CANARY)
    assert not [name for name in env if name.startswith("CLAUDE") and "OAUTH" not in name]
    assert not {"PYTHONPATH", "VIRTUAL_ENV"} & set(env)
    assert seen["leads"]
    assert "the parser drops its last line" in seen["prompt"]
    assert SECRET_IN_WORDS not in seen["prompt"]
    assert not [
        p for p, data in scene.everything().items() if CANARY.encode() in data and "/bin/" not in p
    ]

    # a key in the shell does not change the provider
    (claude.folder / "seen.json").unlink()
    scene.command("summaries", "run", SESSION, ANTHROPIC_API_KEY="sk-ant-" + "x" * 40)
    assert claude.seen["env"]["CLAUDE_CODE_OAUTH_TOKEN"] == CANARY
    assert "ANTHROPIC_API_KEY" not in claude.seen["env"]


@pytest.mark.parametrize(
    ("mode", "reason"),
    [("auth", "auth: claude: Invalid bearer token"), ("", "refused: `claude` is not on PATH")],
)
def test_a_bad_token_or_a_missing_claude_is_the_reason_of_a_plain_summary(
    scene: Scene, claude: Claude, mode: str, reason: str
) -> None:
    claude.mode(mode)
    if not mode:
        (claude.folder / "claude").unlink()
    agree(scene)
    scene.start()
    scene.end()
    row = scene.wait_for_summary()
    assert (row["kind"], row["reason"]) == ("plain", f"claude: {reason}")
    assert mode or scene.spent()["today"]["calls"] == 0


def test_children_of_claude_are_killed_after_the_time_limit(scene: Scene, claude: Claude) -> None:
    """While it runs, the token is only in its environment."""
    claude.mode("hang")
    agree(scene, llm_timeout=4)
    scene.start()
    scene.end()
    until(lambda: scene.make_due("slow") or claude.pids, "claude was not called")
    assert processes_with(CANARY) == set(claude.pids)
    until(lambda: not any(map(psutil.pid_exists, claude.pids)), "its children still run")
    assert scene.llm.is_running
    claude.mode("ok")
    assert scene.wait_for_summary()["kind"] == "llm"
