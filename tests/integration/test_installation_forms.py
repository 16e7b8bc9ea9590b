"""Every way to install hivepipe gives hooks that record, even while pip replaces the package.

Runs pip on the project as a wheel and editable, and pipx and uv if they are on PATH. Dependencies
come from the environment of the tests, so that no network is needed.
"""

import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import venv
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests.conftest import NEUTRAL, ROOT, until
from tests.integration.test_readme import steps
from tests.outcome import outcome_of
from tests.rounds import ASKED_ROUNDS, SEED
from tests.wheels import INSTALL_SECS, Wheels, pip

ROUNDS = ASKED_ROUNDS or 1


class Account:
    """A user with an own environment; `fire` runs hooks as Claude Code does in a project."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open("shop")
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

    def open(self, name: str) -> None:
        self.project = self.folder / name
        self.project.mkdir()

    def install(self, *words: str) -> None:
        pip(self.bin / "python", "install", *words)

    def hivepipe(self, *words: str) -> str:
        command = [str(self.bin / "hivepipe"), *words]
        done = outcome_of(command, self.env, self.project)
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
        return outcome_of(
            words,
            {**self.env, "CLAUDE_PROJECT_DIR": str(self.project)},
            self.project,
            input=json.dumps(payload),
        )

    def recorded(self) -> list[dict[str, Any]]:
        self.hivepipe("drain")
        return list(json.loads(self.hivepipe("sessions", "--all", "--json"))["sessions"])


@pytest.fixture
def account(tmp_path: Path) -> Account:
    return Account(tmp_path)


@pytest.fixture(scope="module")
def shared_account(tmp_path_factory: pytest.TempPathFactory, wheels: Wheels) -> Account:
    made = Account(tmp_path_factory.mktemp("account"))
    made.install(str(wheels.built()))
    return made


@pytest.fixture
def installed(shared_account: Account, request: pytest.FixtureRequest) -> Account:
    """An account with the wheel and a new project; a test that changes the wheel restores it."""
    shared_account.open(request.node.name)
    return shared_account


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


# Settings of 1.0.0 in a shared file and the plugin run this command.
BY_NAME = 'h=$(command -v hivepipe-hook) && exec "$h" {}; exit 0 # hivepipe'


@pytest.mark.parametrize("form", ["wheel", "editable"])
def test_hooks_of_an_installation_record(
    request: pytest.FixtureRequest, wheels: Wheels, form: str
) -> None:
    account = request.getfixturevalue("installed" if form == "wheel" else "account")
    if form == "editable":
        account.install("-e", str(wheels.clone))
        # hatchling creates a folder with the package's name in an editable environment too
        assert (account.packages / "hivepipe" / "_hooks").is_dir()
    account.open(f"{form}-with-a-copy-in-the-state-folder")
    account.hivepipe("init")
    assert_records(account, account.handlers())
    account.open(f"{form}-without-a-copy")
    account.hivepipe("init", "--no-probe")
    shutil.rmtree(account.folder / ".local/state/hivepipe/hooks")
    names = {"SessionStart": "session_start", "UserPromptSubmit": "user_prompt_submit"}
    by_name = {event: {"command": BY_NAME.format(name)} for event, name in names.items()}
    assert_records(account, by_name)


@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_hooks_of_pipx_and_uv_record(account: Account, wheels: Wheels, tool: str) -> None:
    program = shutil.which(tool)
    if not program:
        pytest.skip(f"{tool} is not on PATH")
    line = next(step for step in steps(ROOT / "README.md") if step.startswith("pipx install"))
    if tool == "uv":
        line = "uv tool install --constraints hivepipe/requirements.lock ./hivepipe"
    (account.folder / "hivepipe").symlink_to(wheels.clone)
    path = f"{Path(program).parent}:{account.env['PATH']}"
    done = outcome_of(
        ["sh", "-ec", line],
        {**account.env, "PATH": path, "PIPX_HOME": str(account.folder / "pipx")},
        account.folder,
        timeout=INSTALL_SECS,
    )
    if done.returncode:
        pytest.skip(f"{tool} cannot install here: {done.stderr[-200:]}")
    account.bin = account.folder / ".local" / "bin"
    account.hivepipe("init")
    assert_records(account, account.handlers())


SCOPES = {"--local": "settings.local.json", "--project": "settings.json"}


class HookLoad:
    """A thread per settings file fires hooks, 50 a second, until the end and checks each answer."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.fired: list[str] = []
        self.wrong: list[object] = []
        self.is_over = threading.Event()
        self.threads = [
            threading.Thread(target=self._fire_until_over, args=(account.handlers(name), name))
            for name in SCOPES.values()
        ]

    def __enter__(self) -> "HookLoad":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def _fire_until_over(self, handlers: dict[str, Any], name: str) -> None:
        number = 0
        while not self.is_over.wait(0.02):
            number += 1
            prompt = f"prompt {name} {number}"
            event = "UserPromptSubmit"
            done = self.account.fire(handlers[event], event, prompt=prompt, prompt_id=prompt)
            if (done.returncode, done.stdout, done.stderr) != (0, NEUTRAL, ""):
                self.wrong.append((prompt, done))
            self.fired.append(prompt)


def prompts_of(account: Account) -> set[str]:
    account.hivepipe("drain")
    database = f"{account.hivepipe('home').strip()}/hive.db"
    with closing(sqlite3.connect(database)) as db:
        return {prompt for (prompt,) in db.execute("SELECT prompt FROM prompts")}


@pytest.mark.long
def test_an_upgrade_under_load_loses_no_event(installed: Account, wheels: Wheels) -> None:
    for scope in SCOPES:
        installed.hivepipe("init", "--no-probe", scope)
    pauses = random.Random(SEED)
    with HookLoad(installed) as load:
        for _ in range(ROUNDS):
            installed.install("--force-reinstall", str(wheels.built()))
            time.sleep(pauses.random())
    assert load.wrong == []
    assert len(load.fired) > ROUNDS
    assert prompts_of(installed) == set(load.fired)


def test_a_deleted_package_loses_no_event(installed: Account) -> None:
    """The environment is deleted, as by `pipx reinstall`, but the base interpreter stays."""
    installed.hivepipe("init", "--no-probe")
    handlers = installed.handlers()
    moved = (installed.folder / "venv").rename(installed.folder / "away")
    event = "UserPromptSubmit"
    try:
        assert not installed.bin.exists()
        done = installed.fire(handlers[event], event, prompt="a", prompt_id="a")
    finally:
        moved.rename(installed.folder / "venv")
    assert (done.returncode, done.stdout, done.stderr) == (0, NEUTRAL, "")
    assert prompts_of(installed) == {"a"}


def test_the_next_start_of_the_stack_updates_the_hooks(installed: Account) -> None:
    installed.hivepipe("init", "--no-probe")
    hook = Path(installed.handlers()["Stop"]["command"])
    before = hook.with_name("hook_path").read_bytes()
    module = installed.packages / "hivepipe" / "hook" / "intake.py"
    text = module.read_text()
    newer, found = re.subn(r'(if not text:\s+return b")', r"\1newer", text)
    assert found == 1

    def hook_output() -> str:
        handler = installed.handlers()["UserPromptSubmit"]
        return installed.fire(handler, "UserPromptSubmit", prompt="a", prompt_id="a").stdout

    try:
        module.write_text(newer)
        assert hook_output() == NEUTRAL
        installed.hivepipe("up", "-d")
        assert hook.with_name("hook_path").read_bytes() != before
        until(lambda: hook_output() == "newer", "the old code answers")
    finally:
        module.write_text(text)
        installed.hivepipe("down")


def test_entries_of_1_0_0_are_replaced_by_init_and_removed_by_uninstall(installed: Account) -> None:
    path = installed.project / ".claude" / "settings.local.json"
    path.parent.mkdir()
    hint = "# hivepipe: if this fails, run 'hivepipe init' again or delete this entry"
    args = ["-I", "-S", str(installed.packages / "hivepipe/_hooks/stop.py"), hint]
    old = {"type": "command", "command": os.path.realpath(sys.executable), "args": args}
    theirs = {"type": "command", "command": "theirs # hivepipe"}
    groups = [{"hooks": [old]}, {"hooks": [theirs]}]
    path.write_text(json.dumps({"hooks": {"Stop": groups}}, indent=2))
    installed.hivepipe("init", "--no-probe")
    first, second = json.loads(path.read_text())["hooks"]["Stop"]
    assert first == {"hooks": [theirs]}
    (handler,) = second["hooks"]
    assert handler["command"].endswith("/hook")
    path.write_text(json.dumps({"hooks": {"Stop": groups}, "model": "opus"}, indent=2))
    installed.hivepipe("uninstall")
    left = json.loads(path.read_text())
    assert left == {"hooks": {"Stop": [{"hooks": [theirs]}]}, "model": "opus"}
