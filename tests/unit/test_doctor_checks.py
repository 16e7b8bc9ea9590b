"""Doctor checks whose failure a test must simulate: managed settings, a full disk."""

import json
import os
import shutil
import sqlite3
import time
from collections import namedtuple
from collections.abc import Iterator
from contextlib import closing
from errno import EACCES
from pathlib import Path
from unittest.mock import Mock

import pytest

from hivepipe.db import location
from hivepipe.db.database import Database
from hivepipe.doctor import disk
from hivepipe.doctor.checks import CHECKS, examine
from hivepipe.doctor.facts import Facts, Finding, SettingsFile
from hivepipe.events.job_plan import utc
from hivepipe.home import Place, kept_folder, record_path, state_folder, user_folder
from hivepipe.install.claude_code import Scope, settings_path
from hivepipe.install.claude_plugin import Plugin
from hivepipe.install.hook_entries import EVENTS, Entry, Form, entry
from hivepipe.queue import lost_events
from hivepipe.stack import shared_page
from hivepipe.stack.runtime_folder import Stack
from hivepipe.team import connection, membership
from hivepipe.times import stored_time

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    home = tmp_path / "shop" / ".hive-mind"
    home.mkdir(parents=True)
    return Facts(Place(str(home.parent), str(home), {}), Stack(str(home), str(tmp_path / "run")))


def findings_of(name: str, facts: Facts) -> list[Finding]:
    return list(CHECKS[name](facts))


@pytest.fixture
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "managed-settings.json"
    monkeypatch.setattr("hivepipe.doctor.facts._MANAGED", (str(path),))
    return path


def test_the_processes_are_read_once(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    read = Mock(return_value=[])
    monkeypatch.setattr("hivepipe.stack.stack_processes.users_processes", read)
    assert [*findings_of("supervisor", facts), *findings_of("redis", facts)] == []
    assert read.call_count == 1


@pytest.mark.parametrize("file", ["managed-settings.json", "managed-settings.d/10-hooks.json"])
def test_managed_settings_that_disable_hooks_are_reported(
    facts: Facts, managed: Path, file: str
) -> None:
    assert findings_of("managed-settings", facts) == []
    path = managed.parent / file
    path.parent.mkdir(exist_ok=True)
    for setting in ("allowManagedHooksOnly", "disableAllHooks"):
        path.write_text(json.dumps({setting: True}))
        (finding,) = findings_of("managed-settings", facts)
        assert f"your hooks will not run, because {path} says {setting}" in finding.text
        path.write_text(json.dumps({setting: False}))
        assert findings_of("managed-settings", facts) == [], setting


@pytest.mark.parametrize(
    ("name", "first", "last", "counts"),
    [
        ("disableAllHooks", True, False, ""),
        ("disableAllHooks", "yes", "yes", ""),  # Claude Code ignores the value
        ("allowManagedHooksOnly", True, False, ""),
        ("allowManagedHooksOnly", False, True, "10-hooks.json"),
        ("allowManagedHooksOnly", False, "no", "10-hooks.json"),  # an invalid value means true
        ("strictPluginOnlyCustomization", ["hooks"], ["skills"], "managed-settings.json"),
        ("strictPluginOnlyCustomization", ["hooks"], False, ""),
    ],
)
def test_the_last_file_of_an_administrator_counts_and_lists_are_joined(
    facts: Facts, managed: Path, name: str, first: object, last: object, counts: str
) -> None:
    """The rows were tried with Claude Code 2.1.332, the invalid values also with 2.1.197."""
    facts.claude = (2, 1, 332)
    managed.write_text(json.dumps({name: first}))
    dropped = managed.parent / "managed-settings.d" / "10-hooks.json"
    dropped.parent.mkdir()
    dropped.write_text(json.dumps({name: last}))
    found = findings_of("managed-settings", facts)
    assert len(found) == bool(counts)
    assert all(f"{counts} says {name}" in finding.text for finding in found)
    facts.claude = (2, 1, 197)
    is_ignored = not isinstance(last, bool | list)
    assert findings_of("managed-settings", facts) == ([] if is_ignored else found)


@pytest.mark.parametrize(("text", "is_bad"), [('{"a": fal', True), ("[]", True), ("", False)])
def test_an_administrators_file_that_is_no_object_is_reported(
    facts: Facts, managed: Path, text: str, is_bad: bool
) -> None:
    managed.write_text(text)
    facts.claude = (2, 1, 332)
    found = findings_of("managed-settings", facts)
    assert [f"will not run, because {managed} is not" in each.text for each in found] == [
        True
    ] * is_bad
    facts.claude = (2, 1, 197)
    assert findings_of("managed-settings", facts) == []


@pytest.mark.parametrize("name", ["HIVEPIPE_DISABLED", "HIVEPIPE_NESTED"])
def test_settings_that_disable_the_hooks_by_a_variable_are_reported(
    facts: Facts, managed: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    settings = Path(facts.place.project, ".claude", "settings.json")
    settings.parent.mkdir()
    settings.write_text(json.dumps({"env": {name: "1"}}))
    (finding,) = findings_of("environment", facts)
    assert finding.text == f"{settings} sets {name}: hooks do nothing; remove it there"
    managed.write_text(json.dumps({"env": {name: "0"}}))
    monkeypatch.setenv(name, "1")
    assert findings_of("environment", facts) == []


@pytest.mark.parametrize("value", [True, ["skills", "hooks"]])
def test_a_policy_that_allows_hooks_of_plugins_only_is_reported(
    facts: Facts, managed: Path, value: object
) -> None:
    managed.write_text(json.dumps({"strictPluginOnlyCustomization": ["skills"]}))
    assert findings_of("managed-settings", facts) == []
    managed.write_text(json.dumps({"strictPluginOnlyCustomization": value}))
    (finding,) = findings_of("managed-settings", facts)
    assert "strictPluginOnlyCustomization" in finding.text
    facts.plugin = Plugin("hivepipe@x", "/somewhere", "0.1.0")
    assert findings_of("managed-settings", facts) == []


@pytest.mark.parametrize(
    ("plugins", "findings"), [({}, 1), ({"hivepipe@x": True}, 0), ({"hivepipe@x": False}, 1)]
)
def test_a_plugin_enabled_by_managed_settings_may_run_hooks(
    facts: Facts, managed: Path, plugins: dict[str, bool], findings: int
) -> None:
    managed.write_text(json.dumps({"allowManagedHooksOnly": True, "enabledPlugins": plugins}))
    assert len(findings_of("managed-settings", facts)) == findings


@pytest.mark.parametrize(("flags", "reason"), [(os.ST_RDONLY, "read-only here"), (0, "your own")])
def test_the_reason_why_a_folder_cannot_be_written_is_named(
    facts: Facts, monkeypatch: pytest.MonkeyPatch, flags: int, reason: str
) -> None:
    os.makedirs(kept_folder(facts.place.home))
    monkeypatch.setattr("os.access", lambda *_: False)
    monkeypatch.setattr("os.statvfs", lambda _: Mock(f_flag=flags))
    (finding,) = findings_of("exports", facts)
    assert reason in finding.text


@pytest.mark.parametrize("setting", ["allowManagedHooksOnly", "strictPluginOnlyCustomization"])
@pytest.mark.parametrize("is_ours", [True, False])
def test_hooks_in_managed_settings_run(
    facts: Facts, managed: Path, setting: str, is_ours: bool
) -> None:
    """The settings were tried with Claude Code 2.1.332."""
    dropped = managed.parent / "managed-settings.d" / "10-hooks.json"
    dropped.parent.mkdir()
    managed.write_text(json.dumps({setting: True}))
    others = {"hooks": [{"type": "command", "command": "true"}]}
    found = entry(EVENTS[0], Form.SHARED) if is_ours else others
    dropped.write_text(json.dumps({"hooks": {"Stop": [found]}}))
    assert bool(findings_of("managed-settings", facts)) != is_ours
    assert facts.who_runs_hooks == [str(dropped)] * is_ours


@pytest.mark.parametrize(
    ("scope", "folder", "version", "is_recorded"),
    [
        ("local", "", (2, 1, 332), True),
        ("local", "", (2, 1, 197), True),
        ("local", "below", (2, 1, 332), True),
        ("local", "below", (2, 1, 197), False),
        ("local", "below", None, True),
        ("project", "below", (2, 1, 332), False),
        ("project", "", (2, 1, 332), True),
        ("user", "module/below", (2, 1, 197), True),
        ("local", "module", (2, 1, 332), False),
        ("local", "module/below", (2, 1, 332), False),
    ],
)
def test_a_folder_whose_sessions_read_no_hooks_is_a_note(
    facts: Facts, scope: str, folder: str, version: tuple[int, ...] | None, is_recorded: bool
) -> None:
    """As the real Claude Code did in each of these cases."""
    project = Path(facts.place.project)
    for top in (project, project / "module"):
        (top / ".git").mkdir(parents=True)
    facts.folder = str(project / folder)
    entries: list[tuple[str, Entry]] = [("Stop", {})]
    path = settings_path(Scope(scope), str(project))
    facts.settings_files = [SettingsFile(path, {}, "", Scope(scope), entries)]
    facts.claude, facts.plugin = version, None
    notes = findings_of("folder", facts)
    assert [each.is_note for each in notes] == ([] if is_recorded else [True])


def test_a_session_that_ran_without_the_hooks_is_a_note(
    facts: Facts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Claude Code 2.1.332 skips a file with `"permissions": {"allow": "Bash"}` as a whole."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    settings = tmp_path / "shop" / "settings.local.json"
    settings.write_text("{}")
    facts.settings_files = [SettingsFile(str(settings), {}, "", Scope.LOCAL, [("Stop", {})])]
    project = facts.place.project
    name = project.replace("/", "-").replace("_", "-")
    folder = tmp_path / "claude" / "projects" / name
    record = Path(record_path(project))
    record.parent.mkdir(parents=True, exist_ok=True)
    assert findings_of("unrecorded", facts) == []
    folder.mkdir(parents=True)
    folder.joinpath("gone.jsonl").symlink_to(tmp_path / "gone")
    assert findings_of("unrecorded", facts) == []

    def names_a_session(
        started: int, settings_age: int = 3600, record_age: int = 3600, cwd: str = project
    ) -> bool:
        """Tell whether there is a note, after ages in seconds; the transcript is new."""
        at = stored_time(int(facts.now - started) * 10**9)
        folder.joinpath("s1.jsonl").write_text(json.dumps({"timestamp": at, "cwd": cwd}))
        os.utime(settings, (facts.now - settings_age, facts.now - settings_age))
        record.touch()
        os.utime(record, (facts.now - record_age, facts.now - record_age))
        found = findings_of("unrecorded", facts)
        assert all(each.is_note for each in found)
        return bool(found)

    assert names_a_session(600)
    assert not names_a_session(600, settings_age=60)
    assert not names_a_session(600, record_age=60)  # perhaps it ran before `hivepipe on`
    assert not names_a_session(0)
    assert not names_a_session(600, cwd=f"{project}-2")  # it moved here by `/cd`
    assert names_a_session(60)
    folder.joinpath("agent-a1.jsonl").write_text("{}")  # old versions keep subagents here
    (finding,) = findings_of("unrecorded", facts)
    assert "session, s1." in finding.text
    assert str(settings) in finding.text
    facts.record = {"state": "off"}
    assert findings_of("unrecorded", facts) == []
    facts.record = {}
    facts.spooled = [Path("waiting")]
    assert findings_of("unrecorded", facts) == []
    facts.spooled = []
    for state, count in (("retrying", 0), ("waiting", 1), ("retrying", 1), ("failed", 1)):
        query = Mock(return_value={state: count})
        monkeypatch.setattr("hivepipe.doctor.stack._query", query)
        assert bool(findings_of("unrecorded", facts)) == (not count)
    monkeypatch.setattr("hivepipe.doctor.stack._query", Mock(return_value=None))
    with closing(Database(Path(facts.place.home, "hive.db"))) as db:
        assert len(findings_of("unrecorded", facts)) == 1
        with db.transaction():
            db.insert("sessions", {"id": "s1", "status": "ended"})
    assert findings_of("unrecorded", facts) == []


def test_a_nearly_full_disk_is_reported(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    for less, texts in ((0, []), (1_000_000, ["199 MB are free"])):
        usage = Usage(10**12, 0, disk.ROOM_BYTES - less)
        monkeypatch.setattr(shutil, "disk_usage", lambda _path, it=usage: it)
        found = findings_of("disk", facts)
        assert len(found) == len(texts)
        assert all(text in finding.text for text, finding in zip(texts, found, strict=True))


def test_a_shared_file_system_is_a_note_with_the_path_of_the_database(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findings_of("file-system", facts) == []
    for mounted, is_database_shared in ((facts.place.project, False), ("/", True)):
        mounts = f"1 0 0:1 / {mounted} rw - virtiofs share rw\n"
        monkeypatch.setattr(location, "_mounts", lambda mounts=mounts: mounts)
        (finding,) = findings_of("file-system", facts)
        assert finding.is_note
        assert "/databases/" in finding.text
        assert ("set XDG_STATE_HOME" in finding.text) == is_database_shared
        # Without the copy, a new database would begin empty.
        assert (f"copy {state_folder()} into" in finding.text) == is_database_shared


def test_a_short_cleanup_period_of_transcripts_is_a_note(
    facts: Facts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Path(facts.place.project, ".claude", "settings.json")
    settings.parent.mkdir()
    for text, days in (
        ("{}", 30),
        ('{"cleanupPeriodDays": 7}', 7),
        ('{"cleanupPeriodDays": 0}', 0),
    ):
        settings.write_text(text)
        (finding,) = findings_of("transcripts", Facts(facts.place, facts.stack))
        assert finding.is_note
        assert f"after {days} days" in finding.text
    settings.write_text('{"cleanupPeriodDays": 3650}')
    assert findings_of("transcripts", Facts(facts.place, facts.stack)) == []


def test_a_check_that_fails_is_reported_and_stops_no_other(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = PermissionError(EACCES, "no", "/elsewhere")

    def broken(_facts: Facts) -> Iterator[Finding]:
        raise error
        yield

    def sound(_facts: Facts) -> Iterator[Finding]:
        yield Finding("found")

    checks = {"broken": broken, "sound": sound}
    monkeypatch.setattr("hivepipe.doctor.checks.CHECKS", checks)
    (first, second) = examine(facts)
    assert first[0] == "broken"
    assert "PermissionError" in first[1].text
    assert second == ("sound", Finding("found"))
    monkeypatch.setattr("hivepipe.doctor.checks.unusable_state_folder", lambda: "HOME is closed")
    assert len(list(examine(facts))) == 2
    error.filename = f"{user_folder()}/.claude/settings.json"
    assert list(examine(facts)) == [("sound", Finding("found"))]


def test_the_check_of_a_large_database_ends_in_time(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = facts.home / "hive.db"
    Database(path).close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE large (x)")
        db.executemany("INSERT INTO large VALUES (?)", zip(range(3000)))
        db.execute("INSERT INTO schema_migrations VALUES ('9999', '')")
    monkeypatch.setattr(disk, "CHECK_SECS", 0)
    newer, finding = findings_of("database", facts)
    assert "newer" in newer.text
    assert finding.is_note
    assert "so large that 0 s were too short" in finding.text


def test_events_spooled_in_memory_are_reported(facts: Facts, tmp_path: Path) -> None:
    facts.home.joinpath("spool").mkdir()
    facts.home.joinpath("spool", "1_1.json").touch()
    assert findings_of("spool-in-memory", facts) == []
    memory = tmp_path / "memory"
    memory.mkdir()
    facts.__dict__["spooled"] = [memory / "1_1.json"]
    (finding,) = findings_of("spool-in-memory", facts)
    assert finding.text.startswith(f"1 event outside {facts.home}, which was not writable")


def test_lost_events_are_reported_with_their_times(facts: Facts) -> None:
    assert findings_of("lost-events", facts) == []
    now_ns = time.time_ns()
    path = facts.home / "lost-events"
    lost_events.prepare(str(facts.home))
    assert findings_of("lost-events", facts) == []
    with path.open("a") as file:
        file.write(f"\n{now_ns - 10**9}\n\n{now_ns}\n\n{now_ns - 30 * 86_400 * 10**9}\n")
    (finding,) = findings_of("lost-events", facts)
    first, last = (utc(at)[:19] for at in (now_ns - 10**9, now_ns))
    assert f"2 events could not be kept between {first} and {last} UTC" in finding.text
    assert str(path) in finding.mend


def test_an_enabled_page_that_is_not_installed_is_reported(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert findings_of("page", facts) == []
    monkeypatch.setattr(shared_page, "is_enabled", lambda: True)
    assert findings_of("page", facts) == []
    monkeypatch.setattr(shared_page, "find_spec", lambda _name: None)
    (finding,) = findings_of("page", facts)
    assert "install hivepipe again, with its requirements.lock" in finding.text


def test_an_unusable_team_membership_is_reported(
    facts: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "user_config_folder", lambda: str(tmp_path))
    assert findings_of("team", facts) == []
    (tmp_path / "team.json").write_text("{}")
    (finding,) = findings_of("team", facts)
    assert "team.json is damaged" in finding.text
    monkeypatch.setattr(connection, "is_installed", lambda: False)
    (finding,) = findings_of("team", facts)
    assert "install hivepipe again, with its requirements.lock" in finding.text


@pytest.mark.parametrize("name", ["owner", "modes"])
def test_a_file_that_is_replaced_or_removed_is_no_failure(
    facts: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    facts.home.chmod(0o700)
    (tmp_path / "old").touch()  # was the folder of a hive
    (facts.home / "hives").touch(mode=0o600)
    (facts.home / "hives").write_text(f"{tmp_path}/old/.hive\n")
    assert findings_of(name, facts) == []
    listed = [Path(facts.place.home, each) for each in ("hive.db-wal", "hive.db")]
    listed[1].touch(mode=0o600)
    monkeypatch.setattr(Path, "iterdir", lambda _folder: iter(listed))
    assert findings_of(name, facts) == []


def test_the_command_for_a_foreign_path_outside_the_home_names_that_path(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 12345)
    (finding,) = findings_of("owner", facts)
    assert finding.mend.endswith(f" {facts.home}")
    facts.home.rmdir()
    outside = facts.home.with_name(".claude-state")
    outside.mkdir()
    (finding,) = findings_of("owner", facts)
    assert finding.text.startswith(f"{outside} belongs")
    assert finding.mend.endswith(f" {outside}")
