"""The probe sends an event through every registered hook and checks its row; no trace is left."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hivepipe.install.hook_entries import EVENTS, OLDEST_WITH_PLUGIN, Form, entry, events_of
from tests.conftest import until
from tests.installed import User, changed
from tests.integration.test_plugin import Plugin

RECORDED = {"recorded"}
HOOKS = len(events_of(None))  # for an unknown version of Claude Code
PLUGGED_IN = len(events_of(OLDEST_WITH_PLUGIN))


def probed(user: User, expect: int = 0, **env: str) -> list[dict[str, Any]]:
    """Return doctor's probe result of each hook."""
    done = user.do("hivepipe", "doctor", "--probe", "--json", **env)
    report = json.loads(done.stdout)
    wrong = [entry for entry in report["findings"] if entry["check"] == "probe"]
    assert done.returncode >= expect
    assert bool(wrong) == bool(expect), wrong
    return list(report["probe"])


def verdicts(found: list[dict[str, Any]]) -> set[str]:
    return {each["verdict"] for each in found}


def row_counts(user: User) -> dict[str, int]:
    """Return the number of rows in each table of the home."""
    with sqlite3.connect(user.recorded / "hive.db") as db:
        names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type='table'")]
        return {name: db.execute(f"SELECT count(*) FROM [{name}]").fetchone()[0] for name in names}


def test_init_ends_with_a_probe_and_leaves_nothing_after_uninstall(user: User) -> None:
    before = user.files()
    output = user.hivepipe("init", "--probe")
    assert f"{HOOKS} of {HOOKS} hooks recorded" in output
    assert user.processes() == [], "init starts nothing"
    assert user.hivepipe("sessions", "--all", "--json").count('"id"') == 0
    user.hivepipe("uninstall")
    assert changed(before, user.files()) == {}


def test_init_can_skip_the_probe(user: User) -> None:
    assert "probe" not in user.hivepipe("init")
    assert not (user.recorded / "hive.db").exists()


@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_every_scope_is_probed(user: User, scope: str) -> None:
    assert f"{HOOKS} of {HOOKS} hooks recorded" in user.hivepipe("init", scope, "--probe")


def test_doctor_starts_the_stack_as_a_hook_would(user: User) -> None:
    user.hivepipe("init")
    found = probed(user)
    assert len(found) == HOOKS
    assert verdicts(found) == RECORDED
    assert not any(each["by_hand"] for each in found)
    assert user.processes()
    user.hivepipe("down")


def test_a_probe_leaves_no_row_no_marker_and_no_file(user: User) -> None:
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    user.play_session()
    user.hivepipe("down")
    user.hivepipe("drain")
    (user.recorded / "spool").mkdir(mode=0o700, exist_ok=True)
    user.own(user.recorded)
    before, files = row_counts(user), set(user.files(user.recorded))
    found = probed(user)  # the stack was stopped by the user, so the probe starts none
    assert verdicts(found) == RECORDED
    assert all(each["by_hand"] for each in found)
    # such a process has the database open
    until(lambda: not user.processes(), "a process of hooks has not ended")
    assert row_counts(user) == before
    # A process that exits without closing its connection leaves the logs of SQLite.
    logs = {f"{user.recorded}/hive.db{suffix}" for suffix in ("-wal", "-shm")}
    assert set(user.files(user.recorded)) <= files | logs
    assert [session["id"] for session in user.sessions()] == ["s1"]


def test_the_probe_leaves_spooled_events_to_the_stack(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    user.fire("SessionStart", source="startup")
    before = set((user.recorded / "spool").iterdir())
    user.hivepipe("init", "--probe")
    assert set((user.recorded / "spool").iterdir()) == before


def test_the_direct_path_is_probed(user: User) -> None:
    user.hivepipe("init")
    assert verdicts(probed(user, HIVEPIPE_USE_QUEUE="false")) == RECORDED


def test_the_plugin_is_probed_with_its_package_and_beside_settings(user: User) -> None:
    plugin = Plugin(user)
    output = user.hivepipe("init", "--probe")
    assert f"{PLUGGED_IN} of {PLUGGED_IN} hooks recorded" in output
    found = probed(user, HIVEPIPE_AUTOSTART="0")
    assert {each["source"] for each in found} == {f"{plugin.root}/hooks/hooks.json"}
    plugin.switch(False)
    user.hivepipe("init")
    plugin.switch(True)
    found = probed(user, HIVEPIPE_AUTOSTART="0")
    assert len(found) == PLUGGED_IN + HOOKS
    assert verdicts(found) == RECORDED


def launcher(user: User) -> Path:
    return Path(user.hooks()["Stop"][0]["command"])


def record_nothing(user: User) -> None:
    """Answer and record nothing, as `hivepipe-hook` of an editable installation once did."""
    launcher(user).write_text("#!/bin/sh\n")


def hang(user: User) -> None:
    settings = user.settings.read_text().replace('"timeout": 5', '"timeout": 1')
    user.settings.write_text(settings.replace('"timeout": 2', '"timeout": 1'))
    launcher(user).write_text("#!/bin/sh\nsleep 600 &\nsleep 600\n")


def locked_home(user: User) -> None:
    shutil.rmtree(user.recorded / "spool", ignore_errors=True)
    user.own(user.project)
    (user.recorded).chmod(0o500)


BROKEN = {
    "the program is gone": (lambda u: launcher(u).unlink(), "failed", "cannot start"),
    "the program may not run": (lambda u: launcher(u).chmod(0o600), "failed", "cannot start"),
    "another Python": (lambda u: launcher(u).write_text("#!/bin/false\n"), "failed", "exit code 1"),
    "it answers and keeps nothing": (record_nothing, "answered, but not recorded", "neither in"),
    "it hangs": (hang, "failed", "no answer within 1 s"),
    "the home cannot be written": (locked_home, "answered, but not recorded", "cannot be written"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_hooks_that_record_nothing_are_named(user: User, name: str) -> None:
    break_hooks, verdict, words = BROKEN[name]
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    break_hooks(user)
    found = probed(user, expect=1)
    assert len(found) == HOOKS
    assert verdicts(found) == {verdict}
    assert all(words in each["trouble"] for each in found), found[0]
    (user.recorded).chmod(0o700)


@pytest.mark.parametrize("words", [(), ("--probe",)])
def test_doctor_does_not_claim_that_hooks_record(user: User, words: tuple[str, ...]) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    record_nothing(user)
    assert "and every hook records" not in user.do("hivepipe", "doctor", *words).stdout


def test_a_changed_hook_is_not_probed(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    text = user.settings.read_text().replace('["stop"]', '["stop_it"]')
    user.settings.write_text(text)
    found = {each["event"]: each["verdict"] for each in probed(user)}
    assert "Stop" not in found, "a foreign command, which the check hook-events names"
    assert set(found.values()) == RECORDED


def test_settings_that_switch_hooks_off_are_reported(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    settings = json.loads(user.settings.read_text()) | {"env": {"HIVEPIPE_DISABLED": "1"}}
    user.settings.write_text(json.dumps(settings))
    found = probed(user, expect=1)
    assert verdicts(found) == {"answered, but not recorded"}
    assert "HIVEPIPE_DISABLED is set" in found[0]["trouble"]


def test_a_project_that_is_switched_off_is_not_probed(user: User) -> None:
    user.hivepipe("init")
    user.hivepipe("off")
    before = user.files()
    output = user.do("hivepipe", "doctor", "--probe", "--json").stdout
    assert verdicts(json.loads(output)["probe"]) == {"not fired"}
    assert changed(before, user.files()) == {}
    user.hivepipe("init", "--probe")  # init still succeeds, since the user switched the project off


def test_hooks_of_an_older_installation_are_not_fired(user: User) -> None:
    """An older hook would record the event as a session's."""
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    settings = json.loads(user.settings.read_text())
    hint = "# hivepipe: if this fails, run 'hivepipe init' again or delete this entry"
    args = ["-I", "-S", "/opt/old/hivepipe/_hooks/stop.py", hint]
    settings["hooks"]["Stop"][0]["hooks"][0] |= {"command": "/usr/bin/python3", "args": args}
    user.settings.write_text(json.dumps(settings))
    found = {each["event"]: each["verdict"] for each in probed(user, expect=1)}
    assert found.pop("Stop") == "not fired"
    assert set(found.values()) == RECORDED


def test_hooks_are_fired_if_the_home_folder_has_another_name(user: User) -> None:
    """Some systems have /home as a link to /var/home, and use both names."""
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init")
    link = user.home.with_name("other-name")
    link.symlink_to(user.home)
    user.env["HOME"] = str(link)
    assert {each["verdict"] for each in probed(user)} == RECORDED


def test_no_program_of_a_clone_is_run(user: User) -> None:
    """Claude Code asks whether a new folder is trusted before it runs hooks; `init` comes first."""
    proof = user.home / "pwned"
    program = user.project / "hivepipe" / "hooks" / "0123456789abcdef" / "hook"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch '{proof}'\n")
    program.chmod(0o755)
    commands = [f"/$(touch${{IFS}}{proof})/{program} session_start", f"{program} stop"]
    hooks = {
        event: [{"hooks": [{"type": "command", "command": command}]}]
        for event, command in zip(("SessionStart", "Stop"), commands, strict=True)
    }
    # Entries by name look for the program below XDG_STATE_HOME.
    shared = entry(EVENTS[3], Form.SHARED)
    program.parent.with_name("default").symlink_to(program.parent.name)
    env = {"XDG_STATE_HOME": str(user.project), "PATH": str(program.parent)}
    file = user.project / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"env": env, "hooks": hooks | {"PreToolUse": [shared]}}))
    user.own(user.project)
    said = user.hivepipe("init", "--probe", expect=1)
    assert f"{program} is not a hook program of yours" in said
    assert not proof.exists()


def test_init_names_a_database_that_cannot_be_written(user: User) -> None:
    user.hivepipe("init")
    database = user.recorded / "hive.db"
    database.write_bytes(b"no database " * 1000)
    database.chmod(0o600)
    user.own(database)
    output = user.hivepipe("init", "--probe", expect=1)
    assert f"0 of {HOOKS} hooks recorded" in output
    assert "file is not a database" in output
