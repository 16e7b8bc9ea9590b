"""The real Codex CLI and Copilot CLI: sessions carry the host's name, and no call is denied."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import until
from tests.outcome import outcome_of
from tests.real.environment import client_environment, settle
from tests.real.person import SESSION_SECS, Person
from tests.real.responses_api import PATCH, USAGE, ResponsesApi
from tests.real.script import CWD, Call, Say, Script

CODEX = os.environ.get("TEST_CODEX", "")
COPILOT = os.environ.get("TEST_COPILOT", "")
NOT_FETCHED = "the program was not fetched: `make real`"
ADDED = "*** Begin Patch\n*** Add File: a.txt\n+quokka\n*** End Patch"
BY_CODEX = (
    Call("exec_command", {"cmd": "echo hello > note.txt; ls"}),
    Call("exec_command", {"cmd": "ls /no/such/place"}, fails=True),
    Call(PATCH, {"input": ADDED}),
    Say("Done, quokka."),
)
BY_COPILOT = Script(
    "copilot",
    [
        [Call("bash", {"command": "echo hello > note.txt; ls", "description": "List"})],
        [Call("create", {"path": f"{CWD}/a.txt", "file_text": "quokka"})],
        [Call("view", {"path": f"{CWD}/none.txt"}, fails=True)],
        [Say("Done, quokka.")],
    ],
)
CONFIG = """\
model = "gpt-5.5"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "{address}"
wire_api = "responses"
env_key = "FAKE_KEY"
[projects."{project}"]
trust_level = "trusted"
"""


def run(person: Person, *words: str, **env: str) -> str:
    """Run a program in the project and return its output, including errors."""
    done = subprocess.run(
        words,
        cwd=person.project,
        env={**person.env, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SESSION_SECS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    return done.stdout


def session_of(person: Person) -> Mapping[str, Any]:
    """Return the only session, once all of it is stored."""
    settle(person)
    until(lambda: person.json("sessions", "--all")["sessions"], "no session", 60)
    (session,) = person.json("sessions", "--all")["sessions"]
    assert isinstance(session, dict)
    return session


@pytest.fixture
def person() -> Iterator[Person]:
    """A user without Claude Code, with a fake of the Messages API."""
    with client_environment(BY_COPILOT, init=()) as found:
        (found.home / "bin" / "claude").unlink()
        yield found


@pytest.mark.skipif(not CODEX, reason=NOT_FETCHED)
def test_codex_is_recorded_as_codex(person: Person) -> None:
    with ResponsesApi(BY_CODEX).serving() as api:
        folder = person.home / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            CONFIG.format(address=api.address, project=person.project)
        )
        person.hivepipe("init", "--codex", "--no-probe")
        said = run(
            person, CODEX, "exec", "--dangerously-bypass-hook-trust",
            "--sandbox", "danger-full-access", "please work", FAKE_KEY="k",
        )  # fmt: skip
    assert "Done, quokka." in said
    assert "Failed" not in said  # no hook failed
    session = session_of(person)
    assert (session["client"], session["status"]) == ("codex", "ended")
    assert (session["model"], session["calls"]) == ("gpt-5.5", 3)
    shown = person.json("session", "show", session["id"])
    assert [it["text"] for it in shown["events"] if it["kind"] == "prompt"] == ["please work"]
    compare_archive(person)
    total = person.json("costs")["total"]
    assert total["messages"] == api.served == len(BY_CODEX)
    cached = USAGE["input_tokens_details"]["cached_tokens"]  # type: ignore[index]
    assert total["tokens"]["cache_read"] == api.served * cached
    assert total["tokens"]["input"] == api.served * (1000 - cached)
    assert total["tokens"]["output"] == api.served * 50
    hits = person.json("search", "quokka")["hits"]
    assert sum(hit["who"] == "claude" for hit in hits) == 2  # in the patch and in the answer
    assert "Done, quokka." in person.hivepipe("transcript", session["id"])


def compare_archive(person: Person) -> None:
    """The archive has all lines of the transcript, and the calls and failures of each tool."""
    (transcript,) = (person.home / ".codex" / "sessions").rglob("rollout-*.jsonl")
    (archive,) = person.json("archive", "list")["archives"]
    kept = person.hivepipe("archive", "show", archive["session_id"], "--lines").splitlines()
    assert len(kept) == len(transcript.read_bytes().splitlines())
    counted = {name: (it["calls"], it["failed"]) for name, it in archive["meta"]["tools"].items()}
    assert counted == {"Bash": (2, 1), PATCH: (1, 0)}


@pytest.mark.skipif(not COPILOT, reason=NOT_FETCHED)
def test_copilot_runs_claude_codes_hooks_and_is_recorded_as_copilot(person: Person) -> None:
    person.hivepipe("init", "--local", "--no-probe")
    said = by_copilot(person)
    assert "Done, quokka." in said
    assert (person.project / "note.txt").read_text() == "hello\n"
    assert (person.project / "a.txt").exists()  # no call was denied
    session = session_of(person)
    assert (session["client"], session["status"]) == ("copilot", "ended")
    assert (session["calls"], session["failed"]) == (3, 1)
    shown = person.json("session", "show", session["id"])
    prompts = [it["text"] for it in shown["events"] if it["kind"] == "prompt"]
    assert prompts == [BY_COPILOT.prompt("Please work")]
    assert not person.json("archive", "list")["archives"]


@pytest.mark.skipif(not COPILOT, reason=NOT_FETCHED)
@pytest.mark.parametrize("hook", ["native", "python"])
def test_a_broken_installation_denies_copilot_nothing(person: Person, hook: str) -> None:
    person.env["HIVEPIPE_HOOK"] = hook
    person.hivepipe("init", "--local", "--no-probe")
    settings = json.loads((person.project / ".claude" / "settings.local.json").read_text())
    program = Path(settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"])
    program.with_name("hook_path").unlink()
    # Without a stack the native hook leaves the event to the Python hook.
    in_python = program.with_name("hook.py") if hook == "native" else program
    text = in_python.read_text()
    root = "words = '"  # the folder of the package follows
    assert root in text
    in_python.write_text(text.replace(root, f"{root}/no/such"))
    done = outcome_of([program, "stop"], person.env, person.project, input=b"{}", text=False)
    assert b"hivepipe records nothing" in done.stderr
    by_copilot(person)
    assert (person.project / "note.txt").exists()


def by_copilot(person: Person) -> str:
    """Run Copilot CLI with the script and return its output."""
    return run(
        person, COPILOT, "-p", BY_COPILOT.prompt("Please work"),
        COPILOT_OFFLINE="true", COPILOT_AUTO_UPDATE="false", COPILOT_ALLOW_ALL="true",
        COPILOT_PROVIDER_BASE_URL=person.api.address, COPILOT_PROVIDER_TYPE="anthropic",
        COPILOT_PROVIDER_API_KEY="k", COPILOT_MODEL="claude-sonnet-4.5",
    )  # fmt: skip
