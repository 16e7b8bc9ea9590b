"""Every way to install hivepipe gives hooks that record, even while pip replaces the package.

Runs pip on the project as a wheel and editable, and pipx and uv if they are on PATH. Dependencies
come from the environment of the tests, so that no network is needed.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests.conftest import NEUTRAL, ROOT, until
from tests.integration.test_readme import steps
from tests.rounds import ASKED_ROUNDS, SEED

PARTS = (
    *("hivepipe", "hooks", "workers", "native"),
    *("README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "requirements.lock"),
)
INSTALL_SECS = 600
ROUNDS = ASKED_ROUNDS or 3
THREADS = 2


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clone")
    for part in PARTS:
        source = ROOT / part
        ignored = shutil.ignore_patterns("__pycache__")
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=ignored)
        else:
            shutil.copy(source, folder)
    shutil.copytree(ROOT / ".claude-plugin", folder / ".claude-plugin")
    shutil.copytree(ROOT / "skills", folder / "skills")
    return folder


@pytest.fixture(scope="session")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip(sys.executable, "wheel", "-w", str(folder), str(clone))
    (found,) = folder.glob("*.whl")
    return found


def pip(python: str | Path, *words: str) -> None:
    offline = ("--no-deps", "--no-index", "--no-cache-dir", "--disable-pip-version-check")
    isolation = () if words[-1].endswith(".whl") else ("--no-build-isolation",)
    command = [str(python), "-m", "pip", "-q", words[0], *offline, *isolation, *words[1:]]
    subprocess.run(command, check=True, timeout=INSTALL_SECS)


class Account:
    """A user with an own environment and one project; `fire` runs hooks as Claude Code does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.project = folder / "shop"
        self.project.mkdir()
        venv.create(folder / "venv", symlinks=True, with_pip=False)
        self.bin = folder / "venv" / "bin"
        (self.packages,) = folder.glob("venv/lib/python3*/site-packages")
        (self.packages / "lent.pth").write_text(f"{Path(psutil.__file__).parents[1]}\n")
        self.env = {
            "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "HIVEPIPE_AUTOSTART": "0",
        }

    def install(self, *words: str) -> None:
        pip(self.bin / "python", "install", *words)

    def hivepipe(self, *words: str) -> str:
        command = [str(self.bin / "hivepipe"), *words]
        done = subprocess.run(
            command,
            cwd=self.project,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def handlers(self, name: str = "settings.local.json") -> dict[str, Any]:
        settings = json.loads((self.project / ".claude" / name).read_text())
        return {event: groups[0]["hooks"][0] for event, groups in settings["hooks"].items()}

    def fire(
        self, handler: dict[str, Any], event: str, **fields: object
    ) -> subprocess.CompletedProcess[str]:
        words = ["sh", "-c", handler["command"]]
        if "args" in handler:
            words = [handler["command"], *handler["args"]]
        payload = {"session_id": "s1", "cwd": str(self.project), "hook_event_name": event, **fields}
        return subprocess.run(
            words,
            input=json.dumps(payload),
            env={**self.env, "CLAUDE_PROJECT_DIR": str(self.project)},
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    def recorded(self) -> list[dict[str, Any]]:
        self.hivepipe("drain")
        return list(json.loads(self.hivepipe("sessions", "--all", "--json"))["sessions"])


@pytest.fixture
def account(tmp_path: Path) -> Account:
    return Account(tmp_path)


def assert_records(account: Account, handlers: dict[str, Any]) -> None:
    """Fire two events; both must be stored."""
    start = account.fire(handlers["SessionStart"], "SessionStart", source="startup")
    assert (start.returncode, start.stderr) == (0, "")
    prompt = account.fire(
        handlers["UserPromptSubmit"], "UserPromptSubmit", prompt="hi", prompt_id="p1"
    )
    assert (prompt.returncode, prompt.stdout, prompt.stderr) == (0, NEUTRAL, "")
    (session,) = account.recorded()
    assert session["id"] == "s1"
    assert account.recorded()


@pytest.mark.parametrize("form", ["wheel", "editable"])
@pytest.mark.parametrize("scope", ["--local", "--project"])
def test_hooks_of_an_installation_record(
    account: Account, clone: Path, wheel: Path, form: str, scope: str
) -> None:
    if form == "wheel":
        account.install(str(wheel))
    else:
        account.install("-e", str(clone))
        # hatchling creates a folder with the package's name in an editable environment too
        assert (account.packages / "hivepipe" / "_hooks").is_dir()
    account.hivepipe("init", scope)
    name = "settings.json" if scope == "--project" else "settings.local.json"
    assert_records(account, account.handlers(name))


@pytest.mark.parametrize("form", ["wheel", "editable"])
def test_hivepipe_hook_records_without_a_copy_in_the_state_folder(
    account: Account, clone: Path, wheel: Path, form: str
) -> None:
    """Settings of 1.0.0 in a shared file and the plugin run this command."""
    account.install(*([str(wheel)] if form == "wheel" else ["-e", str(clone)]))
    account.hivepipe("init")
    shutil.rmtree(account.folder / ".local/state/hivepipe/hooks")
    old = 'h=$(command -v hivepipe-hook) && exec "$h" {}; exit 0 # hivepipe'
    names = {"SessionStart": "session_start", "UserPromptSubmit": "user_prompt_submit"}
    assert_records(account, {event: {"command": old.format(name)} for event, name in names.items()})


@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_hooks_of_pipx_and_uv_record(account: Account, clone: Path, tool: str) -> None:
    program = shutil.which(tool)
    if not program:
        pytest.skip(f"{tool} is not on PATH")
    line = next(step for step in steps(ROOT / "README.md") if step.startswith("pipx install"))
    if tool == "uv":
        line = "uv tool install --constraints hivepipe/requirements.lock ./hivepipe"
    (account.folder / "hivepipe").symlink_to(clone)
    path = f"{Path(program).parent}:{account.env['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", line],
        cwd=account.folder,
        env={**account.env, "PATH": path, "PIPX_HOME": str(account.folder / "pipx")},
        capture_output=True,
        text=True,
        timeout=INSTALL_SECS,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"{tool} cannot install here: {done.stderr[-200:]}")
    account.bin = account.folder / ".local" / "bin"
    account.hivepipe("init")
    assert_records(account, account.handlers())


# ---- an upgrade


class HookLoad:
    """Threads that fire hooks until the end, as sessions at work do, and check each answer."""

    def __init__(self, account: Account, handlers: dict[str, Any]) -> None:
        self.account = account
        self.handlers = handlers
        self.fired: list[str] = []
        self.wrong: list[object] = []
        self.is_over = threading.Event()
        self.threads = [
            threading.Thread(target=self._fire_until_over, args=(n,)) for n in range(THREADS)
        ]

    def __enter__(self) -> "HookLoad":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def _fire_until_over(self, thread: int) -> None:
        number = 0
        while not self.is_over.is_set():
            number += 1
            prompt = f"prompt {thread} {number}"
            done = self.account.fire(
                self.handlers["UserPromptSubmit"],
                "UserPromptSubmit",
                prompt=prompt,
                prompt_id=prompt,
            )
            if (done.returncode, done.stdout, done.stderr) != (0, NEUTRAL, ""):
                self.wrong.append((prompt, done))
            self.fired.append(prompt)


@pytest.fixture
def prompts_of() -> Any:
    def prompts(account: Account) -> set[str]:
        account.hivepipe("drain")
        database = f"{account.hivepipe('home').strip()}/hive.db"
        code = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
            "print(*[row[0] for row in c.execute('SELECT prompt FROM prompts')], sep='\\n')"
        )
        output = subprocess.check_output(
            [sys.executable, "-c", code, database], cwd=account.project, text=True, timeout=90
        )
        return set(output.splitlines())

    return prompts


@pytest.mark.parametrize("scope", ["--local", "--project"])
def test_an_upgrade_under_load_loses_no_event(
    account: Account, wheel: Path, scope: str, prompts_of: Any
) -> None:
    account.install(str(wheel))
    account.hivepipe("init", scope)
    name = "settings.json" if scope == "--project" else "settings.local.json"
    pauses = random.Random(SEED)
    with HookLoad(account, account.handlers(name)) as load:
        for _ in range(ROUNDS):
            account.install("--force-reinstall", str(wheel))
            time.sleep(pauses.random())
    assert load.wrong == []
    assert len(load.fired) > ROUNDS
    assert prompts_of(account) == set(load.fired)


def test_a_deleted_package_loses_no_event(account: Account, wheel: Path, prompts_of: Any) -> None:
    """The environment is deleted, as by `pipx reinstall`, but the base interpreter stays."""
    account.install(str(wheel))
    account.hivepipe("init")
    handlers = account.handlers()
    moved = (account.folder / "venv").rename(account.folder / "away")
    assert not account.bin.exists()
    done = account.fire(handlers["UserPromptSubmit"], "UserPromptSubmit", prompt="a", prompt_id="a")
    assert (done.returncode, done.stdout, done.stderr) == (0, NEUTRAL, "")
    moved.rename(account.folder / "venv")
    assert prompts_of(account) == {"a"}


def test_the_next_start_of_the_stack_updates_the_hooks(account: Account, wheel: Path) -> None:
    account.install(str(wheel))
    account.hivepipe("init")
    hook = Path(account.handlers()["Stop"]["command"])
    before = hook.with_name("hook_path").read_bytes()
    module = account.packages / "hivepipe" / "hook" / "intake.py"
    nothing = 'if not text:\n        return b"'
    assert nothing in module.read_text()
    module.write_text(module.read_text().replace(nothing, f"{nothing}newer"))

    def hook_output() -> str:
        handler = account.handlers()["UserPromptSubmit"]
        return account.fire(handler, "UserPromptSubmit", prompt="a", prompt_id="a").stdout

    assert hook_output() == NEUTRAL
    account.hivepipe("up", "-d")
    try:
        assert hook.with_name("hook_path").read_bytes() != before
        until(lambda: hook_output() == "newer", "the old code answers")
    finally:
        account.hivepipe("down")


def test_entries_of_1_0_0_are_replaced_by_init_and_removed_by_uninstall(
    account: Account, wheel: Path
) -> None:
    account.install(str(wheel))
    path = account.project / ".claude" / "settings.local.json"
    path.parent.mkdir()
    hint = "# hivepipe: if this fails, run 'hivepipe init' again or delete this entry"
    args = ["-I", "-S", str(account.packages / "hivepipe/_hooks/stop.py"), hint]
    old = {"type": "command", "command": os.path.realpath(sys.executable), "args": args}
    theirs = {"type": "command", "command": "theirs # hivepipe"}
    groups = [{"hooks": [old]}, {"hooks": [theirs]}]
    path.write_text(json.dumps({"hooks": {"Stop": groups}}, indent=2))
    account.hivepipe("init")
    commands = [
        handler["command"]
        for group in json.loads(path.read_text())["hooks"]["Stop"]
        for handler in group["hooks"]
    ]
    assert commands[0] == theirs["command"]
    assert commands[1].endswith("/hook")
    assert len(commands) == 2
    path.write_text(json.dumps({"hooks": {"Stop": groups}, "model": "opus"}, indent=2))
    account.hivepipe("uninstall")
    left = json.loads(path.read_text())
    assert left == {"hooks": {"Stop": [{"hooks": [theirs]}]}, "model": "opus"}
