"""hivepipe as a plugin of Claude Code: with and without its package, with and without settings."""

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from hivepipe.install.hook_entries import OLDEST_WITH_PLUGIN, events_of
from tests.conftest import NEUTRAL, ROOT
from tests.installed import User, changed
from tests.integration.test_readme import README, steps

ID = "hivepipe@hivepipe"
PARTS = (".claude-plugin", "hivepipe", "hooks", "skills")
# without hivepipe, but with a recent Python
BARE_PATH = "/usr/local/bin:/usr/bin:/bin"


class Plugin:
    """A copy of the repository where Claude Code keeps plugins, enabled for a user."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.root = user.home / ".claude/plugins/cache/hivepipe/hivepipe/it's 1.0.0"
        for part in PARTS:
            plain = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / part, self.root / part, ignore=plain)
        self.python = Path(user.home, "python")
        self.python.mkdir()
        (self.python / "python3").symlink_to(os.path.realpath(user.installation.bin / "python"))
        self.path = f"{self.python}:{BARE_PATH}"
        self.switch(True)

    def switch(self, on: bool) -> None:
        """Write what Claude Code writes when a plugin is enabled or disabled."""
        settings = self.user.home / ".claude" / "settings.json"
        settings.write_text(json.dumps({"enabledPlugins": {ID: on}}))
        copy = {"scope": "user", "installPath": str(self.root), "version": "1.0.0"}
        known = json.dumps({"version": 2, "plugins": {ID: [copy]}})
        (self.user.home / ".claude/plugins/installed_plugins.json").write_text(known)
        self.user.own(self.user.home)

    def fire(self, event: str, path: str = "", **fields: object) -> str:
        """Run the plugin's handler of an event; without `path` nothing of hivepipe is on PATH."""
        (group,) = json.loads((self.root / "hooks/hooks.json").read_text())["hooks"][event]
        (handler,) = group["hooks"]
        payload = {"session_id": "s1", "cwd": str(self.user.project), "hook_event_name": event}
        done = self.user.do(
            "env",
            f"PATH={path or self.path}",
            "/bin/sh",
            "-c",
            handler["command"],
            data=json.dumps(payload | fields),
            CLAUDE_PLUGIN_ROOT=str(self.root),
            CLAUDE_PROJECT_DIR=str(self.user.project),
        )
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    @property
    def spool(self) -> list[Path]:
        return list((self.user.home / ".local/state/hivepipe/default/spool").glob("*.json"))


@pytest.fixture
def plugin(user: User) -> Plugin:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    return Plugin(user)


EDIT = {"tool_name": "Edit", "tool_use_id": "t1", "tool_input": {"file_path": "/a.py"}}


def settings_of(plugin: Plugin) -> dict[str, Any]:
    return dict(json.loads(plugin.user.settings.read_text()))


def test_broken_settings_beside_the_plugin_change_nothing(plugin: Plugin) -> None:
    plugin.user.settings.parent.mkdir()
    plugin.user.settings.write_text('{"a": 1,}')
    plugin.user.own(plugin.user.project)
    before = plugin.user.files()
    for command in ("init", "uninstall"):
        output = plugin.user.hivepipe(command, expect=1)
        assert "settings.local.json is not valid JSON" in output
        assert output.strip().endswith("; nothing was changed")
    assert changed(before, plugin.user.files()) == {}


# ---- without the package
def test_without_the_package_events_are_spooled_and_the_command_shown_once_a_day(
    plugin: Plugin,
) -> None:
    before = plugin.user.files(plugin.user.project)
    report = json.loads(plugin.fire("SessionStart", source="startup"))
    assert set(report) == {"continue", "systemMessage"}
    command = report["systemMessage"].split("run: ")[1]
    assert command.endswith("hivepipe init --user")
    for event in events_of(OLDEST_WITH_PLUGIN):
        assert plugin.fire(event.name) == NEUTRAL
    assert plugin.fire("PostToolUse", **EDIT, tool_response={}) == NEUTRAL
    assert len(plugin.spool) > 3
    assert changed(before, plugin.user.files(plugin.user.project)) == {}


def test_a_session_that_shows_nothing_leaves_the_command_to_another(plugin: Plugin) -> None:
    plugin.user.env["CLAUDE_CODE_ENTRYPOINT"] = "sdk-cli"  # as `claude -p` sets it
    assert plugin.fire("SessionStart") == NEUTRAL
    plugin.user.env["CLAUDE_CODE_ENTRYPOINT"] = "cli"
    assert "run: " in json.loads(plugin.fire("SessionStart"))["systemMessage"]


def test_without_the_package_an_event_waits_for_two_weeks(plugin: Plugin) -> None:
    plugin.fire("Stop")
    (event,) = plugin.spool
    old = event.with_name(f"{int(event.name[:20]) - 15 * 86_400 * 10**9:020d}_1.json")
    old.write_bytes(event.read_bytes())
    plugin.user.own(old)
    plugin.fire("SessionStart")
    assert old not in plugin.spool
    assert event in plugin.spool
    log = plugin.user.home / ".local/state/hivepipe/default/logs/hook-errors.log"
    assert "1 event dropped" in log.read_text()


def test_a_copy_whose_python_was_removed_is_passed_over(plugin: Plugin) -> None:
    copy = plugin.user.home / ".local/state/hivepipe/hooks/default/hook"
    copy.parent.mkdir(parents=True)
    copy.write_text("#!/removed/python3.11 -IS\n")
    copy.chmod(0o700)
    plugin.user.own(plugin.user.home)
    script = f'hook=stop; plugin={shlex.quote(str(plugin.root / "hooks/plugin.sh"))}; . "$plugin"'
    for number, shell in enumerate(("sh", "bash", "bash --posix"), 1):
        data = json.dumps({"session_id": f"s{number}", "hook_event_name": "Stop"})
        words = (*shell.split(), "-c", script)
        done = plugin.user.do("env", f"PATH={plugin.path}", *words, data=data)
        assert (done.returncode, done.stdout) == (0, NEUTRAL)
        assert len(plugin.spool) == number, shell


def test_spooled_events_are_applied_after_installation(plugin: Plugin) -> None:
    plugin.fire("SessionStart", source="startup")
    plugin.fire("PostToolUse", **EDIT, tool_response={})
    assert plugin.spool
    output = plugin.user.hivepipe("init", "--user")
    assert f"run by the plugin {ID} 1.0.0" in output
    home = str(plugin.user.home / ".local/state/hivepipe/default")
    plugin.user.hivepipe("drain", HIVEPIPE_HOME=home)
    assert not plugin.spool
    shown = plugin.user.hivepipe("sessions", "--all", "--json", HIVEPIPE_HOME=home)
    assert [session["id"] for session in json.loads(shown)["sessions"]] == ["s1"]
    # With the package registered, there is no notice.
    notice = plugin.user.home / ".local/state/hivepipe/default/notice"
    notice.unlink()
    assert plugin.fire("SessionStart", source="startup") == NEUTRAL


def test_the_shown_command_installs_from_the_plugins_copy(plugin: Plugin) -> None:
    report = json.loads(plugin.fire("SessionStart", path=f"{plugin.python}:/bin"))
    copy = shlex.quote(str(plugin.root))
    typed = [step for step in steps(README) if "venvs/hivepipe" in step and "export" not in step]
    readme = " && ".join([*typed, "~/.local/venvs/hivepipe/bin/hivepipe init --user"])
    wanted = readme.replace("-r hivepipe/", f"-r {copy}/").replace("./hivepipe", copy)
    assert shlex.split(report["systemMessage"].split("run: ")[1]) == shlex.split(wanted)


def test_with_an_unregistered_package_the_shown_command_is_init(plugin: Plugin) -> None:
    report = json.loads(plugin.fire("SessionStart", path=plugin.user.env["PATH"]))
    assert report["systemMessage"].endswith("run: hivepipe init --user")


@pytest.mark.parametrize("fault", ["none", "old", "gone"])
def test_a_missing_or_old_python_or_a_removed_plugin_is_no_error(
    plugin: Plugin, fault: str
) -> None:
    programs = plugin.user.home / "programs"
    programs.mkdir()
    if fault == "old":  # the plugin takes the Python for an old one
        text = (plugin.root / "hivepipe/hook/plugin.py").read_text()
        assert "sys.hexversion < OLDEST" in text
        newer = text.replace("0x030B0000", "0x7F000000")
        (plugin.root / "hivepipe/hook/plugin.py").write_text(newer)
        (programs / "python3").symlink_to((plugin.python / "python3").readlink())
    elif fault == "gone":  # as if an update removed it while a session runs
        handlers = (plugin.root / "hooks/hooks.json").read_text()
        shutil.rmtree(plugin.root)
        (plugin.root / "hooks").mkdir(parents=True)
        (plugin.root / "hooks/hooks.json").write_text(handlers)
    plugin.user.own(plugin.user.home)
    for event in ("SessionStart", "PostToolUse", "Stop"):
        assert plugin.fire(event, path=str(programs)) == NEUTRAL
    assert plugin.spool == []


def test_a_pyenv_shim_is_used_last(plugin: Plugin) -> None:
    """pyenv has a shim for every version, even for versions that are not installed."""
    shims = plugin.user.home / ".pyenv" / "shims"
    shims.mkdir(parents=True)
    for name in ("python3.12", "python3"):
        (shims / name).write_text("#!/bin/sh\necho no such version >&2\nexit 127\n")
        (shims / name).chmod(0o755)
    (plugin.python / "python3").rename(plugin.python / "python3.11")
    plugin.user.own(plugin.user.home)
    plugin.fire("Stop", path=f"{shims}:{plugin.python}")
    assert plugin.spool


# ---- with the package
def test_shared_hooks_are_kept_beside_the_plugin(plugin: Plugin) -> None:
    plugin.user.hivepipe("init", "--project")
    found = doctor_report(plugin)
    assert [entry["mend"] for entry in found["findings"] if entry["check"] == "hooks-twice"] == [""]
    assert found["healthy"]


def test_init_leaves_the_hooks_to_the_plugin(plugin: Plugin) -> None:
    plugin.switch(False)
    plugin.user.hivepipe("init")
    assert plugin.user.hooks()
    assert doctor_report(plugin)["hooks"] == [str(plugin.user.settings)]
    plugin.switch(True)
    found = doctor_report(plugin)
    assert [entry["mend"] for entry in found["findings"] if entry["check"] == "hooks-twice"] == [
        "hivepipe init"
    ]
    output = plugin.user.hivepipe("init")
    assert "would run twice" in output
    assert not plugin.user.settings.exists()
    found = doctor_report(plugin)
    assert found["hooks"] == [f"the plugin {ID} 1.0.0"]
    assert found["healthy"]
    shown = plugin.user.hivepipe("what")
    assert shown.startswith("~/shop is recorded\n")
    assert f"hooks      the plugin {ID} 1.0.0\n" in shown
    assert plugin.fire("SessionStart", path=plugin.user.env["PATH"]) == NEUTRAL
    plugin.user.hivepipe("drain")
    assert [session["id"] for session in plugin.user.sessions()] == ["s1"]
    assert f"claude plugin uninstall {ID}" in plugin.user.hivepipe("uninstall")


def doctor_report(plugin: Plugin) -> dict[str, Any]:
    return dict(json.loads(plugin.user.do("hivepipe", "doctor", "--json").stdout))


def test_doctor_reports_that_events_of_the_plugin_wait_for_init(plugin: Plugin) -> None:
    wrong = [found for found in doctor_report(plugin)["findings"] if not found["is_note"]]
    assert [(found["check"], found["mend"]) for found in wrong] == [
        ("record", "hivepipe init --user")
    ]
    plugin.user.hivepipe("init", "--user")
    assert doctor_report(plugin)["healthy"]


def test_doctor_reports_problems_of_the_plugin(plugin: Plugin) -> None:
    plugin.user.hivepipe("init")
    manifest = plugin.root / ".claude-plugin/plugin.json"
    manifest.write_text(manifest.read_text().replace('"1.0.0"', '"0.0.9"'))
    (finding,) = [
        found for found in doctor_report(plugin)["findings"] if found["check"] == "plugin"
    ]
    assert finding["is_note"]
    assert "0.0.9" in finding["text"]
    shutil.rmtree(plugin.root)
    found = {entry["check"]: entry for entry in doctor_report(plugin)["findings"]}
    assert found["plugin"]["mend"] == f"claude plugin install {ID}"
    assert "hooks" in found


def test_the_plugin_and_settings_hooks_record_no_event_twice(plugin: Plugin) -> None:
    user = plugin.user
    plugin.switch(False)
    user.hivepipe("init")
    plugin.switch(True)
    home = user.recorded

    def both(event: str, **fields: object) -> list[str]:
        """Run both handlers of an event; return the names of files that the plugin's wrote."""
        before = set((home / "spool").glob("*"))
        assert plugin.fire(event, path=user.env["PATH"], **fields) == NEUTRAL
        by_plugin = {path.name for path in set((home / "spool").glob("*")) - before}
        user.fire(event, **fields)
        return sorted(by_plugin)

    user.env["HIVEPIPE_INSTANCE_ID"] = "i1"  # the id of the common parent process in Claude Code
    # at first the plugin does not know of the settings' hooks
    assert both("SessionStart", source="startup")
    assert both("PostToolUse", **EDIT, tool_response={}) == []
    assert both("Stop", stop_hook_active=False) == []
    # The settings' hook of this event is removed while the session runs.
    settings = settings_of(plugin)
    del settings["hooks"]["Stop"]
    user.settings.write_text(json.dumps(settings, indent=2))
    before = len(list((home / "spool").glob("*")))
    plugin.fire("Stop", path=user.env["PATH"], stop_hook_active=False)
    assert len(list((home / "spool").glob("*"))) == before + 1
    user.hivepipe("drain")
    (session,) = user.sessions()
    assert session["operations"] == 1


def test_without_project_settings_the_plugin_records(plugin: Plugin) -> None:
    """With `--setting-sources user` nothing runs the hooks that the project's settings name."""
    plugin.switch(False)
    plugin.user.hivepipe("init")
    plugin.switch(True)
    home = plugin.user.recorded
    plugin.user.env["HIVEPIPE_INSTANCE_ID"] = "i1"
    for event in ("SessionStart", "Stop"):
        before = len(list((home / "spool").glob("*")))
        plugin.fire(event, path=plugin.user.env["PATH"])
        assert len(list((home / "spool").glob("*"))) > before


def test_commands_that_the_skill_allows_exist_and_only_read(plugin: Plugin) -> None:
    text = (ROOT / "skills/recall/SKILL.md").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith("allowed-tools: ")]
    allowed = [
        part.removeprefix("Bash(hivepipe ").removesuffix(":*)").split()
        for part in line.removeprefix("allowed-tools: ").split(", ")
    ]
    assert all(
        words[0] in ("search", "session", "sessions", "summaries", "memory") for words in allowed
    )
    assert all(words[-1] in ("search", "sessions", "show", "list") for words in allowed)
    for words in allowed:
        plugin.user.hivepipe(*words, "--help")
