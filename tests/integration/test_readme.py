"""Run every command of the README in its order as a new user; at the end nothing is left.

The README's own `pip install` builds the wheel and installs it. Dependencies, which need the
network, come from the environment of the tests; with HIVEPIPE_TEST_ROUNDS they are installed from
the lock file too.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import NEUTRAL, ROOT, until
from tests.installed import AS_USER, Installation, User, changed
from tests.native import BUILT
from tests.outcome import outcome_of
from tests.rounds import ASKED_ROUNDS
from tests.wheels import INSTALL_SECS, Wheels, copy_of_the_clone

README = ROOT / "README.md"
# Pages with a test of their own: several folders (test_moving.py), a stand-in for claude
# (test_hive.py), a PostgreSQL (test_team_page.py), a clone of the source
# (tests/architecture/test_first_change.py).
TESTED_ELSEWHERE = ("moving.md", "hive.md", "team.md", "first-change.md")
GUIDES = [
    page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in TESTED_ELSEWHERE
]

# Commands that are not run, by the beginning of the line, with the reason.
NOT_RUN = {
    "make demo": "makes an environment of its own; the demo itself: test_demo.py",
    "make test": "is what runs this",
    "pipx install": "pipx is not everywhere: test_installation_forms.py",
    "claude plugin ": "needs Claude Code; what it reads of us: test_plugin.py",
    "claude mcp add ": "needs Claude Code; the server: test_mcp.py",
    "hivepipe web": "runs until Ctrl-C: test_web_browser.py",
    "hivepipe up -d --redis-url": "needs the Redis of somebody else: test_other_redis.py",
    'python -I "$(hivepipe root)/': "runs until Ctrl-C: test_stock_workers.py",
    "rq worker": "runs until Ctrl-C: test_rq_tools.py", "systemctl": "needs systemd",
    "loginctl": "needs systemd",
    "honcho": "a program of others; the Procfile: test_procfile.py",
    "docker": "needs docker; the compose file: test_compose.py",
    'echo "HIVEPIPE_': "makes the file that docker needs", "chmod 600 .env": "likewise",
}  # fmt: skip
# Input of commands that ask, exit codes other than 0, and texts in the output.
ANSWERS = {
    "hivepipe credentials set": "sk-or-v1-nothing\n",
    "hivepipe summaries enable": "n\n",
    "hivepipe uninstall --purge": "y\n",
}
EXITS = {"hivepipe summaries enable": "1"}
OUTPUTS = {
    "hivepipe init": " added to ",
    "hivepipe sessions": "s1",
    "hivepipe credentials set": "OPENROUTER_API_KEY",
    "hivepipe summaries enable": "openrouter",
    "hivepipe summaries run": "Ship the lighthouse",
    "hivepipe rq -- info": "queues",
    "hivepipe uninstall --purge": "deleted",
    "hivepipe uninstall --user": "nothing to do",
}


def steps(page: Path) -> list[str]:
    """Return the commands of a page: its indented lines outside of code fences."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE)


def entry_of(table: dict[str, str], step: str) -> str:
    """Return a table's entry for a command, or "" if there is none."""
    return next((entry for start, entry in table.items() if step.startswith(start)), "")


def in_order() -> list[str]:
    """Return all steps: those of the README, and before the purge those of the other pages."""
    ours = steps(README)
    end = next(n for n, step in enumerate(ours) if step.startswith("hivepipe uninstall --purge"))
    return [*ours[:end], *(step for page in GUIDES for step in steps(page)), *ours[end:]]


STEPS = in_order()


def test_every_exception_is_a_command_of_a_page() -> None:
    for start in (*NOT_RUN, *ANSWERS, *EXITS, *OUTPUTS):
        assert any(step.startswith(start) for step in STEPS), start


def test_the_scripts_of_the_pages_are_in_the_wheel(wheels: Wheels) -> None:
    scripts = [shlex.split(step)[2] for step in STEPS if step.startswith("python -I ")]
    assert len(scripts) == 2
    packed = ZipFile(wheels.built()).namelist()
    assert {script.replace("$(hivepipe root)", "hivepipe") for script in scripts} <= {*packed}


class Newcomer(User):
    """An account with Python and git, but without hivepipe."""

    account = "new user"  # the path of every command contains this space

    def __init__(self, folder: Path, installation: Installation) -> None:
        super().__init__(folder, installation)
        self.packages = installation.packages
        self.env |= {
            "PATH": f"{installation.python.parent}:/usr/local/bin:/usr/bin:/bin",
            "PIP_NO_CACHE_DIR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        self.repository = repository(folder / "repository")
        for name in ("src/shop", ".claude/projects"):
            (self.home / name).mkdir(parents=True)
        self.own(folder)
        self.cwd = self.home
        self.profile: list[str] = []

    def type(self, step: str) -> str:
        """Run a line in this user's shell and return the output."""
        line = step.replace("<this repository>", str(self.repository)).replace("SESSION", "s1")
        if line.startswith("export "):
            self.profile.append(line)
        shell = outcome_of(
            [*AS_USER, "sh", "-ec", "\n".join([*self.profile, line])],
            self.env,
            self.cwd,
            input=entry_of(ANSWERS, step),
            timeout=INSTALL_SECS,
        )
        output = shell.stdout + shell.stderr
        assert shell.returncode == int(entry_of(EXITS, step) or 0), f"{step}\n{output}"
        assert entry_of(OUTPUTS, step) in output, f"{step}\n{output}"
        return output

    def add_packages(self) -> None:
        """Make the packages of the tests' environment importable, so that no network is needed.

        The lock file has no ziglang: the machine's own compiler builds the hook.
        """
        if ASKED_ROUNDS:
            return
        (folder,) = self.home.glob(".local/venvs/hivepipe/lib/python3*/site-packages")
        # Python 3.11 installs a version other than the lock file's
        for own in folder.glob("setuptools*"):
            shutil.rmtree(own)
        lent = self.home.parent / "lent"
        lent.mkdir()
        for package in self.packages.iterdir():
            if not (package.name.startswith("ziglang") and shutil.which("cc")):
                (lent / package.name).symlink_to(package)
        (folder / "lent.pth").write_text(f"{lent}\n")
        self.env["PIP_NO_INDEX"] = "1"

    def use_claude(self) -> None:
        """Write a transcript and fire the events of a session, as Claude Code does."""
        program = Path(shlex.split(self.hooks()["Stop"][0]["command"])[0])
        assert program.read_bytes().startswith(b"#!") != BUILT.exists(), "the hook is not native"
        transcript = self.home / ".claude" / "projects" / "shop" / "s1.jsonl"
        transcript.parent.mkdir()
        message = {"role": "user", "content": "Ship the lighthouse."}
        line = {"type": "user", "sessionId": "s1", "uuid": "u1", "message": message}
        transcript.write_text(json.dumps({**line, "timestamp": "2026-11-21T10:00:00.000Z"}) + "\n")
        self.own(self.home / ".claude")
        path_of = {"transcript_path": str(transcript)}
        assert self.fire("SessionStart", source="startup", **path_of) == [NEUTRAL]
        edit = {"tool_name": "Edit", "tool_use_id": "t1", "tool_input": {"file_path": "/a.py"}}
        self.fire("PostToolUse", **edit, tool_response={}, **path_of)
        self.fire("Stop", stop_hook_active=False, **path_of)
        until(lambda: "s1" in self.output_of("archive", "list"), "the session was not archived")
        self.type("hivepipe search lighthouse")

    def output_of(self, *words: str) -> str:
        """Return the output of a command, whatever its exit code."""
        line = "\n".join([*self.profile, f"hivepipe {' '.join(words)}"])
        return self.do("sh", "-c", line).stdout


def repository(folder: Path) -> Path:
    """Return a git repository with the files of a clone that an installation needs."""
    folder.mkdir()
    copy_of_the_clone(folder)
    me = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "-A"), (*me, "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=folder, check=True, timeout=60)
    return folder


@pytest.mark.long
def test_every_command_of_the_readme_runs_and_leaves_nothing(
    installation: Installation, folder: Path
) -> None:
    user = Newcomer(folder, installation)
    kept = (user.home / ".local/venvs", user.home / ".claude/projects", user.home / "hivepipe")
    before: dict[str, str] = {}
    try:
        for step in STEPS:
            if step == "hivepipe init":
                assert "site-packages/hivepipe" in user.output_of("root")
                before = user.files()
                user.cwd = user.project
            if step.startswith("claude  "):
                user.use_claude()
            elif not entry_of(NOT_RUN, step):
                user.type(step)
            if step.startswith("python3 -m venv"):
                user.add_packages()
        assert user.processes() == []
        assert user.sockets() == []
        # The guides keep the user's settings and keys, and files that the owner of a hive wrote.
        kept += (user.home / ".config", user.project / ".hive")
        left = changed(before, user.files())
        assert [path for path in left if not any(Path(path).is_relative_to(k) for k in kept)] == []
    finally:
        user.end_all()


def test_a_package_with_another_hash_is_refused(tmp_path: Path) -> None:
    """An index has every package of the lock file by name and version, but pip refuses all."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    lock = (ROOT / "requirements.lock").read_text()
    for name, version in re.findall(r"^([\w.-]+)==([^ ;]+)", lock, re.MULTILINE):
        make_wheel(wheels, name.replace("-", "_"), version)
    (line,) = (step for step in steps(README) if "--require-hashes" in step)
    venv.create(tmp_path / "venv", symlinks=True)
    for each in (line, line.replace("--require-hashes ", "")):
        output = pip_output(tmp_path / "venv", each, wheels)
        assert "THESE PACKAGES DO NOT MATCH THE HASHES" in output
        assert "Successfully installed" not in output


def make_wheel(folder: Path, name: str, version: str) -> None:
    """Write the smallest wheel that pip accepts."""
    about = f"{name}-{version}.dist-info"
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


def pip_output(environment: Path, line: str, wheels: Path) -> str:
    """Run a line of the README in an environment, with these wheels only; return the output."""
    pip = f"{sys.executable} -m pip --python {environment}"
    line = line.replace("~/.local/venvs/hivepipe/bin/pip", pip)
    line = line.replace("hivepipe/requirements.lock", str(ROOT / "requirements.lock"))
    done = outcome_of(
        ["sh", "-ec", line],
        {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PATH": "/usr/bin:/bin"},
        timeout=INSTALL_SECS,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr
