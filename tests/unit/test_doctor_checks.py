"""Checks whose failure no test can make for real: the machine's own files, a full disk."""

import json
import shutil
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hivepipe.db import location
from hivepipe.doctor import claude, disk, page, team
from hivepipe.doctor.checks import CHECKS, Check, examine
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.events.job_plan import utc
from hivepipe.home import Place
from hivepipe.install.claude_plugin import Plugin
from hivepipe.queue import lost_events
from hivepipe.stack import shared_page
from hivepipe.stack.lock import Stack
from hivepipe.team import membership

Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    home = tmp_path / "shop" / ".hive-mind"
    home.mkdir(parents=True)
    return Facts(Place(str(home.parent), str(home), {}), Stack(str(home), str(tmp_path / "run")))


def found_by(name: str, facts: Facts) -> list[Finding]:
    (check,) = [check for check in CHECKS if check.name == name]
    return list(check.look(facts))


@pytest.mark.parametrize("setting", ["allowManagedHooksOnly", "disableAllHooks"])
@pytest.mark.parametrize("file", ["managed-settings.json", "managed-settings.d/10-hooks.json"])
def test_an_administrators_word_against_hooks_is_named(
    facts: Facts,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    setting: str,
    file: str,
) -> None:
    monkeypatch.setattr(claude, "_MANAGED", (str(tmp_path / "managed-settings.json"),))
    assert found_by("managed-settings", facts) == []
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({setting: True}))
    (finding,) = found_by("managed-settings", facts)
    assert f"your hooks will not run, because {path} says {setting}" in finding.text
    path.write_text(json.dumps({setting: False}))
    assert found_by("managed-settings", facts) == []


@pytest.mark.parametrize("value", [True, ["skills", "hooks"]])
def test_hooks_of_plugins_alone_are_allowed(
    facts: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: object
) -> None:
    path = tmp_path / "managed-settings.json"
    monkeypatch.setattr(claude, "_MANAGED", (str(path),))
    path.write_text(json.dumps({"strictPluginOnlyCustomization": ["skills"]}))
    assert found_by("managed-settings", facts) == []
    path.write_text(json.dumps({"strictPluginOnlyCustomization": value}))
    (finding,) = found_by("managed-settings", facts)
    assert "strictPluginOnlyCustomization" in finding.text
    facts.plugin = Plugin("hivepipe@x", "/somewhere", "0.1.0")
    assert found_by("managed-settings", facts) == []


def test_a_plugin_that_an_administrator_switches_on_is_a_managed_one(
    facts: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "managed-settings.json"
    monkeypatch.setattr(claude, "_MANAGED", (str(path),))
    said: dict[str, object] = {"allowManagedHooksOnly": True}
    path.write_text(json.dumps(said))
    assert len(found_by("managed-settings", facts)) == 1
    path.write_text(json.dumps({**said, "enabledPlugins": {"hivepipe@x": True}}))
    assert found_by("managed-settings", facts) == []
    path.write_text(json.dumps({**said, "enabledPlugins": {"hivepipe@x": False}}))
    assert len(found_by("managed-settings", facts)) == 1


def test_a_disk_that_is_nearly_full_is_named(facts: Facts, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_free(count: int) -> Callable[[object], Usage]:
        return lambda _path: Usage(10**12, 0, count)

    monkeypatch.setattr(shutil, "disk_usage", with_free(disk.ROOM_BYTES))
    assert found_by("disk", facts) == []
    monkeypatch.setattr(shutil, "disk_usage", with_free(disk.ROOM_BYTES - 1_000_000))
    (finding,) = found_by("disk", facts)
    assert "199 MB are free" in finding.text


def test_a_shared_file_system_is_a_note_with_the_databases_place(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found_by("file-system", facts) == []
    monkeypatch.setattr(location, "_mounts", lambda: "1 0 0:1 / / rw - virtiofs share rw\n")
    (finding,) = found_by("file-system", facts)
    assert finding.is_note
    assert "/databases/" in finding.text


def test_the_days_that_transcripts_live_are_a_note_until_they_are_many(
    facts: Facts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Path(facts.place.project, ".claude", "settings.json")
    settings.parent.mkdir()
    for said, days in (
        ({}, 30),
        ({"cleanupPeriodDays": 7}, 7),
        ({"cleanupPeriodDays": 0}, 0),
    ):
        settings.write_text(json.dumps(said))
        (finding,) = found_by("transcripts", Facts(facts.place, facts.stack))
        assert finding.is_note
        assert f"after {days} days" in finding.text
    settings.write_text('{"cleanupPeriodDays": 3650}')
    assert found_by("transcripts", Facts(facts.place, facts.stack)) == []


def test_a_check_that_fails_is_reported_and_stops_no_other(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_facts: Facts) -> Iterator[Finding]:
        raise PermissionError("no")
        yield

    def sound(_facts: Facts) -> Iterator[Finding]:
        yield Finding("found")

    checks = (Check("broken", broken), Check("sound", sound))
    monkeypatch.setattr("hivepipe.doctor.checks.CHECKS", checks)
    (first, second) = examine(facts)
    assert first[0] == "broken"
    assert "PermissionError" in first[1].text
    assert second == ("sound", Finding("found"))


def test_events_in_memory_are_named(facts: Facts, tmp_path: Path) -> None:
    facts.home.joinpath("spool").mkdir()
    facts.home.joinpath("spool", "1_1.json").touch()
    assert found_by("spool-in-memory", facts) == []
    memory = tmp_path / "memory"
    memory.mkdir()
    facts.__dict__["spooled"] = [memory / "1_1.json"]
    (finding,) = found_by("spool-in-memory", facts)
    assert finding.text.startswith(f"1 event in memory: {facts.home} was not writable")


def test_lost_events_are_named_with_their_times(facts: Facts) -> None:
    assert found_by("lost-events", facts) == []
    now_ns = time.time_ns()
    path = facts.home / "lost-events"
    lost_events.prepare(str(facts.home))
    assert found_by("lost-events", facts) == []
    with path.open("a") as file:
        file.write(f"\n{now_ns - 10**9}\n\n{now_ns}\n\n{now_ns - 30 * 86_400 * 10**9}\n")
    (finding,) = found_by("lost-events", facts)
    first, last = (utc(at)[:19] for at in (now_ns - 10**9, now_ns))
    assert f"2 events could not be kept between {first} and {last} UTC" in finding.text
    assert str(path) in finding.mend


def test_a_page_that_is_asked_for_and_not_installed_is_named(
    facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found_by("page", facts) == []
    monkeypatch.setattr(page, "is_enabled", lambda: True)
    assert found_by("page", facts) == []
    monkeypatch.setattr(shared_page, "find_spec", lambda _name: None)
    (finding,) = found_by("page", facts)
    assert finding.mend == "pip install 'hivepipe[web]'"


def test_a_membership_that_cannot_work_is_named(
    facts: Facts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(membership, "user_config_folder", lambda: str(tmp_path))
    assert found_by("team", facts) == []
    (tmp_path / "team.json").write_text("{}")
    (finding,) = found_by("team", facts)
    assert "team.json is damaged" in finding.text
    monkeypatch.setattr(team, "is_installed", lambda: False)
    (finding,) = found_by("team", facts)
    assert finding.mend == "pip install 'hivepipe[team]'"
