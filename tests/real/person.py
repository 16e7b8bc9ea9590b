"""A test user with a home folder, a project, hivepipe and a real Claude Code."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import CLI
from tests.outcome import outcome_of
from tests.real.messages_api import MessagesApi
from tests.real.scenarios import TOOLS

SESSION_SECS = 300
KEY = "sk-ant-" + "dummy-" * 4


@dataclass
class Person:
    """A user whose files are all below one folder, isolated from the users of this machine."""

    root: Path
    claude: Path
    api: MessagesApi

    def __post_init__(self) -> None:
        """Make the home folder and a Git project in it."""
        self.home, self.project = self.root / "ann", self.root / "ann" / "shop"
        self.project.mkdir(parents=True)
        programs = self.home / "bin"  # `init` asks this client for its version.
        programs.mkdir()
        (programs / "claude").symlink_to(self.claude)
        folders = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.env = {
            "PATH": os.pathsep.join(folders),
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TMPDIR": str(self.root),
            "XDG_RUNTIME_DIR": str(self.root),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": self.api.address,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        self._run("git", "init", "-q")
        folder = str(self.project)
        known = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {folder: {"hasTrustDialogAccepted": True}},
        }
        (self.home / ".claude.json").write_text(json.dumps(known))

    def hivepipe(self, *words: str, expect: int | None = 0) -> str:
        """Run a hivepipe command in the project and return its output."""
        done = self._run(*CLI, *words, expect=expect)
        return done.stdout

    def json(self, *words: str, expect: int | None = 0) -> Any:
        """Run a command with --json and return the parsed output."""
        return json.loads(self.hivepipe(*words, "--json", expect=expect))

    def ask(
        self, prompt: str, *options: str, tools: str = TOOLS, expect: int | None = 0
    ) -> dict[str, Any]:
        """Run the client without a terminal and return its JSON report of the session."""
        done = self._run(
            str(self.claude), "-p", prompt, "--output-format", "json",
            "--allowedTools", tools, *options, expect=expect,
        )  # fmt: skip
        report = json.loads(done.stdout)
        assert isinstance(report, dict), done.stdout
        return report

    def write(self, path: str, text: str) -> None:
        (self.project / path).parent.mkdir(parents=True, exist_ok=True)
        (self.project / path).write_text(text)

    def client(self, *words: str) -> str:
        return self._run(str(self.claude), *words).stdout

    def stream(self, prompt: str, *options: str) -> str:
        """Run the client without a terminal; return its stream-json lines, as a hive worker."""
        words = ("-p", prompt, "--output-format", "stream-json", "--verbose")
        return self._run(str(self.claude), *words, "--allowedTools", TOOLS, *options).stdout

    def transcripts(self, session: str) -> list[Path]:
        """Return the client's transcripts of a session, followed by those of its subagents."""
        projects = self.home / ".claude" / "projects"
        own = [*projects.glob(f"*/{session}.jsonl")]
        return [*own, *sorted(projects.glob(f"*/{session}/subagents/**/*.jsonl"))]

    def _run(self, *words: str, expect: int | None = 0) -> "subprocess.CompletedProcess[str]":
        done = outcome_of(
            words, self.env, self.project, stdin=subprocess.DEVNULL, timeout=SESSION_SECS
        )
        assert expect in (None, done.returncode), (
            words[:3],
            done.stdout[-2000:],
            done.stderr[-2000:],
        )
        return done
