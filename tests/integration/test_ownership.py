"""Files that hivepipe did not create are unchanged after every command."""

import json
import os
import time
from pathlib import Path

import pytest

from hivepipe.files.manifest import Manifest
from hivepipe.jobs.args import Args
from hivepipe.operations.prune_files import prune_files
from hivepipe.operations.slow import at_once, manual_origin
from tests import predecessor_logs as old
from tests.conftest import Home, until
from tests.installed import User, changed
from tests.old_project import OldProject, states

DAY = 86_400
KEYS = {"abc123", "task-xyz", "fresh1", "xmas"}


def logs(user: User) -> Path:
    return user.project / ".claude-state" / "logs"


def add_predecessor_files(user: User) -> tuple[old.State, dict[str, str]]:
    before = old.make(logs(user))
    user.own(user.project)
    return before, user.files()


def run_stack(user: User) -> None:
    """Run a stack that imports everything, and use a skill."""
    user.hivepipe("init", "--in-tree")
    user.hivepipe("up", "-d")
    use_a_skill(user)
    until(lambda: listed(user) == KEYS, "the archives were not imported")
    until(lambda: exported(user) == 43, "the export lacks old or new uses")


def import_everything(user: User) -> None:
    """Import without a stack, and use a skill."""
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init", "--in-tree")
    use_a_skill(user)
    user.hivepipe("drain")
    user.hivepipe("archive", "sweep")
    assert listed(user) == KEYS
    assert exported(user) == 43


def use_a_skill(user: User) -> None:
    used = {"tool_input": {"skill": old.SKILL}, "tool_response": {"success": True}}
    user.fire("PostToolUse", tool_name="Skill", tool_use_id="toolu_1", **used)


def listed(user: User) -> set[str]:
    found = json.loads(user.hivepipe("archive", "list", "--agents", "--json"))["archives"]
    return {entry["agent_id"] or entry["session_id"] for entry in found}


def exported(user: User) -> int:
    path = logs(user) / "skill-usage.json"
    try:
        count: int = json.loads(path.read_text())["skills"][old.SKILL]["count"]
    except (FileNotFoundError, KeyError):
        return 0
    return count


def test_a_purge_restores_every_earlier_file(user: User) -> None:
    before, files = add_predecessor_files(user)
    run_stack(user)
    user.hivepipe("disk", "--prune")
    assert "oldword" in user.hivepipe("search", "oldword")
    assert old.TOKEN not in user.hivepipe("search", "oldword")
    user.hivepipe("archive", "verify")
    for name, wanted in before.items():
        now = old.state(logs(user))
        assert now.get(f"{name}.before-hivepipe", now.get(name)) == wanted, name

    output = user.hivepipe("uninstall", "--purge", "--dry-run")
    assert "hive.db" in output
    assert "left     .claude-state/logs/notes.txt: hivepipe did not make it" in output
    output = user.hivepipe("uninstall", "--purge", "--yes")
    assert "notes.txt: hivepipe did not make it" in output
    assert old.state(logs(user)) == before
    assert changed(files, user.files()) == {}


def test_uninstall_restores_earlier_files_and_keeps_recorded_data(user: User) -> None:
    before, _ = add_predecessor_files(user)
    import_everything(user)
    user.hivepipe("uninstall")
    assert old.state(logs(user), before) == before
    assert (user.project / ".hive-mind" / "hive.db").exists()
    user.hivepipe("init")
    user.hivepipe("archive", "sweep")
    assert listed(user) == KEYS
    user.hivepipe("uninstall", "--purge", "--yes")
    assert old.state(logs(user)) == before


def test_a_purge_deletes_files_of_a_named_instance(user: User) -> None:
    before = user.files()
    user.hivepipe("init")
    user.env |= {"HIVEPIPE_INSTANCE_ID": "ann.2", "HIVEPIPE_HOOK": "python"}
    user.fire("SessionStart", source="startup")
    edit = {"tool_name": "Edit", "tool_use_id": "t1", "tool_input": {"file_path": "/a.py"}}
    user.fire("PostToolUse", **edit, tool_response={})
    left = {path.name for path in (user.recorded / "instances").iterdir()}
    assert left == {"ann.2", "ann.2.checkpoint", "ann.2.settings"}
    user.hivepipe("uninstall", "--purge", "--yes")
    assert changed(before, user.files()) == {}


def test_a_purge_keeps_files_that_a_user_added_or_changed(user: User) -> None:
    before, _ = add_predecessor_files(user)
    import_everything(user)
    home, month = user.recorded, logs(user) / "main-session" / "2025-01"
    (copy,) = month.glob("*abc123_*.jsonl")
    dropped = [
        home / "mine.txt",
        home / "spool" / "mine.json",
        home / "instances" / "mine",
        month / "mine.jsonl",
        home / "logs" / "mine.log.1",
    ]
    for path in dropped:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine\n")
    (home / "link.db").symlink_to(user.project / "nowhere")
    with copy.open("a") as archive:
        archive.write('{"note": "mine"}\n')
    export = logs(user) / "skill-usage.json"
    export.write_text(f"{export.read_text()}\n")
    edited = {path: path.read_bytes() for path in (copy, export)}
    user.own(user.home)
    output = user.hivepipe("uninstall", "--purge", "--yes")
    assert {path: path.read_bytes() for path in edited} == edited
    assert all(path.read_text() == "mine\n" for path in dropped)
    assert (home / "link.db").is_symlink()
    assert output.count("was changed since") >= 2
    aside = logs(user) / "skill-usage.json.before-hivepipe"
    assert (aside.read_bytes(), aside.stat().st_mode) == before["skill-usage.json"][:2]
    assert not (user.project / ".hive-mind").exists()


# ---- retention
def old_archive(home: Home) -> Path:
    """Create an expired archive of hivepipe's own."""
    claude = home.root / ".claude" / "projects" / "-shop"
    claude.mkdir(parents=True)
    transcript = claude / "0ld.jsonl"
    line = {"sessionId": "0ld", "cwd": str(home.project), "timestamp": "2025-01-01T00:00:00Z"}
    transcript.write_bytes(old.message_line("word", **line))
    home.command("init", "--no-probe")
    home.command("archive", "sweep")
    (path,) = (home.kept).rglob("*_0ld.jsonl")
    for each in (path, transcript):
        os.utime(each, (time.time() - 400 * DAY,) * 2)
    return path


def test_deletions_are_announced_on_the_first_day_and_logged(private_home: Home) -> None:
    path = old_archive(private_home)
    (entry,) = json.loads(private_home.command("status", "--json", expect=None))["deletions"]
    assert (entry["kind"], entry["number"], entry["paths"]) == ("archive", 1, [str(path)])
    assert entry["oldest_days"] >= 400
    assert entry["rule"] == "[retention] archives = 365"
    output = private_home.command("status", expect=None)
    assert "1 archive" in output
    assert "[retention] archives = 365 in config.toml" in output

    home = str(private_home.path)
    with at_once(home) as context:
        prune_files(context, manual_origin("prune_files"), Args())
    assert path.exists()
    private_home.installed_long_ago()
    with at_once(home) as context:
        prune_files(context, manual_origin("prune_files"), Args())
    assert not path.exists()
    (deleted,) = json.loads(private_home.command("disk", "--log", "--json"))["deletions"]
    assert (deleted["kind"], deleted["path"]) == ("archive", str(path))
    assert deleted["rule"] == "[retention] archives = 365"
    assert "400" in private_home.command("disk", "--log", "--utc")
    assert not json.loads(private_home.command("status", "--json", expect=None))["deletions"]


def test_a_rotated_log_of_another_program_is_never_deleted(private_home: Home) -> None:
    private_home.path.mkdir(mode=0o700, exist_ok=True)
    before = old.make(private_home.kept)
    private_home.command("up", "-d")
    private_home.command("down")
    private_home.command("disk", "--prune")
    after = old.state(private_home.kept)
    for name in ("hook-errors.log.1", "security-audit.log.2025-01-09"):
        assert after[name] == before[name]


def test_an_empty_manifest_is_created_again(tmp_path: Path) -> None:
    (tmp_path / "manifest.db").touch()
    manifest = Manifest(str(tmp_path))
    assert manifest.installed_at() > 0
    assert not manifest.adopts


def test_forget_keeps_logs_of_another_program(user: User) -> None:
    before, _ = add_predecessor_files(user)
    import_everything(user)
    theirs = logs(user) / "security-audit.log.2025-01-09"
    theirs.write_text("[2025-01-09T14:30:00Z] Redacted 1 API key from session abc123\n")
    user.own(user.project)
    wanted = theirs.read_bytes()
    output = user.hivepipe("forget", "abc123", "--yes")
    assert theirs.read_bytes() == wanted
    assert "abc123" not in listed(user)
    original = f"{old.MAIN}.jsonl"
    assert original in output
    assert old.state(logs(user))[original] == before[original]


def test_a_purge_without_an_installation_deletes_nothing(user: User) -> None:
    project = OldProject(user.project).whole()
    (project.home / "empty").mkdir()
    for without in ("", "hive.db", "queue"):
        if without:
            (project.home / without).rename(user.project / without)
        user.own(user.project)
        before = states(user.project)
        assert "nothing to do" in user.hivepipe("uninstall", "--purge", "--yes")
        assert states(user.project) == before
        if without:
            (user.project / without).rename(project.home / without)


def test_a_purge_follows_no_link_to_a_home(user: User) -> None:
    project = OldProject(user.home / "elsewhere")
    project.folder.mkdir()
    project.whole()
    (user.project / ".hive-mind").symlink_to(project.home)
    user.own(user.home)
    before = states(user.home)
    user.hivepipe("uninstall", "--purge", "--yes")
    assert states(user.home) == before


def commit_ignore_files(user: User, text: str) -> None:
    """Make a repository with such an ignore file in each folder that may hold data."""
    for name in (".hive-mind", ".claude-state"):
        (user.project / name).mkdir()
        (user.project / name / ".gitignore").write_text(text)
    user.own(user.project)
    user.git("init", "-q")
    user.git("add", "-A", "-f")
    user.git("commit", "-qm", "x")


@pytest.mark.parametrize("text", ["hive.db*\n!.gitignore\n", "*\n"])
def test_ignore_files_of_a_project_are_not_changed(user: User, text: str) -> None:
    commit_ignore_files(user, text)
    user.hivepipe("init")
    user.fire("SessionStart", source="startup")
    assert user.git("status", "--porcelain", "-uno") == ""
    assert "others commit" not in user.do("hivepipe", "doctor").stdout
    user.hivepipe("uninstall", "--purge", "--yes")
    assert user.git("status", "--porcelain") == ""


def test_a_purge_deletes_events_that_the_home_could_not_take(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    before = user.files()
    user.hivepipe("init")
    user.recorded.chmod(0o500)
    user.fire("Stop")
    user.recorded.chmod(0o700)
    (event,) = user.run_folder.rglob("spool/*.*")
    assert "kept" in user.hivepipe("uninstall")
    assert event.exists()
    user.hivepipe("init")
    assert event.name in user.hivepipe("uninstall", "--purge", "--dry-run")
    user.hivepipe("uninstall", "--purge", "--yes")
    assert changed(before, user.files()) == {}


@pytest.mark.parametrize("words", ["uninstall --purge --yes", "move-home"])
def test_committed_ignore_files_stay_when_the_data_leaves_the_tree(user: User, words: str) -> None:
    commit_ignore_files(user, "*\n")
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init", "--in-tree")
    user.play_session()
    user.hivepipe("drain")
    user.hivepipe(*words.split())
    assert user.git("status", "--porcelain") == ""


def test_folders_named_like_exports_and_logs_are_restored(user: User) -> None:
    old.make(logs(user))
    for name in ("skill-usage.json", "archive-index.json", "cleanup.log"):
        (logs(user) / name).unlink()
        (logs(user) / name).mkdir()
        (logs(user) / name / "theirs").write_text("x")
    user.own(user.project)
    before = states(user.project)
    user.env["HIVEPIPE_AUTOSTART"] = "0"
    user.hivepipe("init", "--in-tree")
    user.play_session()
    used = {"tool_input": {"skill": old.SKILL}, "tool_response": {}, "tool_use_id": "t2"}
    user.fire("PostToolUse", tool_name="Skill", **used)
    user.hivepipe("drain")
    assert (logs(user) / "skill-usage.json").is_file()
    user.hivepipe("uninstall", "--purge", "--yes")
    assert states(user.project) == before
