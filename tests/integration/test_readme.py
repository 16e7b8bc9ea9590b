"""Every command of the README, in its order, by a new user in a new project; then all is gone.

The README's own `pip install` builds the wheel and installs it. The packages of others, for which
it needs the network, are lent from the environment of the tests; with HIVEPIPE_TEST_ROUNDS they are
installed too, by the lock.
"""

import json
import re
import shlex
import shutil
import subprocess
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import NEUTRAL, ROOT, until
from tests.installed import AS_USER, Installation, User, changed
from tests.native import BUILT
from tests.rounds import ASKED_ROUNDS

README = ROOT / "README.md"
# With tests of their own: several folders (test_moving.py), a stand-in for claude (test_hive.py),
# a PostgreSQL (test_team_page.py), a clone of the source (tests/architecture/test_first_change.py).
ELSEWHERE = ("moving.md", "hive.md", "team.md", "first-change.md")
GUIDES = [page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE]
CLONED = (
    *("hivepipe", "hooks", "workers", "native"),
    *("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "requirements.lock"),
)
INSTALL_SECS = 600

# By the beginning of the line: what cannot be run here, and why.
NOT_RUN = {
    "make demo": "makes an environment of its own; the demo itself: test_demo.py",
    "make test": "is what runs this",
    "make faults": "a suite of its own: test_rounds.py",
    "make real": "a suite of its own, with the real client: tests/real",
    "HIVEPIPE_TEST_": "likewise",
    "pipx install": "pipx is not everywhere: test_installation_forms.py",
    "claude plugin ": "needs Claude Code; what it reads of us: test_plugin.py",
    "claude mcp add ": "needs Claude Code; the server: test_mcp.py",
    "hivepipe web": "runs until Ctrl-C: test_web_browser.py",
    "hivepipe up -d --redis-url": "needs the Redis of somebody else: test_other_redis.py",
    "python -I workers/": "runs until Ctrl-C: test_stock_workers.py",
    "rq worker": "runs until Ctrl-C: test_rq_tools.py",
    "systemctl": "needs systemd",
    "loginctl": "needs systemd",
    "honcho": "a program of others; the Procfile: test_procfile.py",
    "docker": "needs docker; the compose file: test_compose.py",
    'echo "HIVEPIPE_': "makes the file that docker needs",
    "chmod 600 .env": "likewise",
}
# What is said to a command that asks, how it ends where that is not by 0, and what it says.
ANSWERS = {
    "hivepipe credentials set": "sk-or-v1-nothing\n",
    "hivepipe summaries enable": "n\n",
    "hivepipe uninstall --purge": "y\n",
}
EXITS = {"hivepipe summaries enable": "1"}
SAYS = {
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
    """Return the commands of a page: its indented lines, outside of fences."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE)


def of(table: dict[str, str], step: str) -> str:
    """Return what a table says of a command, empty if nothing."""
    return next((said for start, said in table.items() if step.startswith(start)), "")


def in_order() -> list[str]:
    """Return all steps: the README's, and before it deletes everything those of the other pages."""
    ours = steps(README)
    end = next(n for n, step in enumerate(ours) if step.startswith("hivepipe uninstall --purge"))
    return [*ours[:end], *(step for page in GUIDES for step in steps(page)), *ours[end:]]


STEPS = in_order()


@pytest.mark.parametrize("start", sorted({*NOT_RUN, *ANSWERS, *EXITS, *SAYS}))
def test_no_exception_is_made_for_what_no_page_says(start: str) -> None:
    assert any(step.startswith(start) for step in STEPS)


class Newcomer(User):
    """An account with a Python and git, and nothing of hivepipe."""

    account = "new user"  # the space is in the path of the environment, and so of each command

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
        """Type a line into this user's shell and return what is said."""
        line = step.replace("<this repository>", str(self.repository)).replace("SESSION", "s1")
        if line.startswith("export "):
            self.profile.append(line)
        shell = subprocess.run(
            [*AS_USER, "sh", "-ec", "\n".join([*self.profile, line])],
            input=of(ANSWERS, step),
            cwd=self.cwd,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=INSTALL_SECS,
            check=False,
        )
        said = shell.stdout + shell.stderr
        assert shell.returncode == int(of(EXITS, step) or 0), f"{step}\n{said}"
        assert of(SAYS, step) in said, f"{step}\n{said}"
        return said

    def lend_packages(self) -> None:
        """Let the new environment see the packages of the tests' own: no network is needed."""
        if ASKED_ROUNDS:
            return
        (folder,) = self.home.glob(".local/venvs/hivepipe/lib/python3*/site-packages")
        for own in folder.glob("setuptools*"):  # Python 3.11 brings one that is not the lock's
            shutil.rmtree(own)
        (folder / "lent.pth").write_text(f"{self.packages}\n")
        self.env["PIP_NO_INDEX"] = "1"

    def use_claude(self) -> None:
        """Do what Claude Code would: a transcript, and the events of a session that goes on."""
        program = Path(shlex.split(self.hooks()["Stop"][0]["command"])[0])
        assert program.read_bytes().startswith(b"#!") != BUILT.exists(), "the hook is not native"
        transcript = self.home / ".claude" / "projects" / "shop" / "s1.jsonl"
        transcript.parent.mkdir()
        message = {"role": "user", "content": "Ship the lighthouse."}
        line = {"type": "user", "sessionId": "s1", "uuid": "u1", "message": message}
        transcript.write_text(json.dumps({**line, "timestamp": "2026-11-21T10:00:00.000Z"}) + "\n")
        self.own(self.home / ".claude")
        told = {"transcript_path": str(transcript)}
        assert self.fire("SessionStart", source="startup", **told) == [NEUTRAL]
        edit = {"tool_name": "Edit", "tool_use_id": "t1", "tool_input": {"file_path": "/a.py"}}
        self.fire("PostToolUse", **edit, tool_response={}, **told)
        self.fire("Stop", stop_hook_active=False, **told)
        until(lambda: "s1" in self.look("archive", "list"), "the session was not archived")
        self.type("hivepipe search lighthouse")

    def look(self, *words: str) -> str:
        """Return what a command says, whether or not it succeeds."""
        line = "\n".join([*self.profile, f"hivepipe {' '.join(words)}"])
        return self.do("sh", "-c", line).stdout


def repository(folder: Path) -> Path:
    """Return a repository of what a clone holds, as far as an installation needs it."""
    folder.mkdir()
    for name in CLONED:
        if (ROOT / name).is_dir():
            plain = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=plain)
        else:
            shutil.copy2(ROOT / name, folder)
    me = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "-A"), (*me, "commit", "-qm", "all")):
        subprocess.run(["git", *words], cwd=folder, check=True, timeout=60)
    return folder


def test_every_step_of_the_readme_runs_and_leaves_nothing(
    installation: Installation, folder: Path
) -> None:
    user = Newcomer(folder, installation)
    kept = (user.home / ".local/venvs", user.home / ".claude/projects", user.home / "hivepipe")
    before: dict[str, str] = {}
    try:
        for step in STEPS:
            if step == "hivepipe init":
                assert "site-packages/hivepipe" in user.look("root")
                before = user.files()
                user.cwd = user.project
            if step.startswith("claude  "):
                user.use_claude()
            elif not of(NOT_RUN, step):
                user.type(step)
            if step.startswith("python3 -m venv"):
                user.lend_packages()
        assert user.processes() == []
        assert user.sockets() == []
        # Where the guides say so: settings and keys of the user's, and what a hive's owner wrote.
        kept += (user.home / ".config", user.project / ".hive")
        left = changed(before, user.files())
        assert [path for path in left if not any(Path(path).is_relative_to(k) for k in kept)] == []
    finally:
        user.end_all()


def test_another_package_in_the_place_of_a_locked_one_is_refused(tmp_path: Path) -> None:
    """All of the lock is there, by name and version; pip takes none of it."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    lock = (ROOT / "requirements.lock").read_text()
    for name, version in re.findall(r"^([\w.-]+)==([^ ;]+)", lock, re.MULTILINE):
        make_wheel(wheels, name.replace("-", "_"), version)
    (line,) = (step for step in steps(README) if "--require-hashes" in step)
    said = [pip_says(tmp_path / "lock", line, wheels)]
    said += [pip_says(tmp_path / "plain", line.replace("--require-hashes ", ""), wheels)]
    for each in said:
        assert "THESE PACKAGES DO NOT MATCH THE HASHES" in each
        assert "Successfully installed" not in each


def make_wheel(folder: Path, name: str, version: str) -> None:
    """Write the least that pip takes for a package."""
    about = f"{name}-{version}.dist-info"
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


def pip_says(folder: Path, line: str, wheels: Path) -> str:
    """Type a line of the README in a new environment, with these packages alone."""
    venv.create(folder / "venv", with_pip=True, symlinks=True)
    line = line.replace("~/.local/venvs/hivepipe", str(folder / "venv"))
    line = line.replace("hivepipe/requirements.lock", str(ROOT / "requirements.lock"))
    done = subprocess.run(
        ["sh", "-ec", line],
        env={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECS,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout + done.stderr
