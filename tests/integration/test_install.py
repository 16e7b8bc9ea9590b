"""init and uninstall, off and on, as an unprivileged user; uninstall leaves nothing behind."""

import json
import re
import shutil
from pathlib import Path

import pytest

from hivepipe.home import short_hash
from hivepipe.install.hook_entries import EVENTS, events_of
from tests.conftest import NEUTRAL, until
from tests.installed import User, changed

SETTINGS = """{
    "model": "opus",
    "hooks": {
        "PostToolUse": [
            { "matcher": "Edit", "hooks": [ { "type": "command", "command": "true" } ] }
        ]
    }
}"""


def with_settings(user: User, text: str = SETTINGS) -> None:
    user.settings.parent.mkdir()
    user.settings.write_text(text)
    user.own(user.project)


def with_worktree(user: User, name: str = "tree") -> Path:
    """Make the project a repository with a worktree beside it."""
    user.git("init", "-q")
    user.git("commit", "-q", "--allow-empty", "-m", "first")
    tree = user.home / name
    user.git("worktree", "add", "-q", "-b", "branch", str(tree))
    return tree


def spooled(user: User) -> list[Path]:
    return list((user.recorded / "spool").glob("*.json"))


# ---- nothing left behind
def test_uninstall_leaves_no_file_process_or_socket(user: User) -> None:
    with_settings(user)
    user.git("init", "-q")
    before = user.files()
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    assert user.processes()
    assert user.sockets()
    user.hivepipe("down")
    shown = user.hivepipe("init")
    assert ("hivepipe up -d" in shown, "starts the stack" in shown) == (True, False)
    assert "stack" not in user.hivepipe("uninstall")  # none ran
    assert changed(before, user.files()) == {}
    assert user.processes() == []
    assert user.sockets() == []


def test_uninstall_keeps_recorded_data_unless_purged(user: User) -> None:
    before = user.files()
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    user.play_session()
    until(lambda: user.sessions(), "no session was recorded")
    output = user.hivepipe("uninstall")
    left = changed(before, user.files())
    assert "stack    was stopped" in output
    assert "kept" in output
    assert left
    state = user.home / ".local/state/hivepipe"
    folders = {str(each) for path in (user.recorded, state / "made") for each in path.parents}
    folders |= {str(user.recorded), str(state / "made")}
    assert all(path in folders or path.startswith(f"{user.recorded}/") for path in left)
    assert user.processes() == []
    output = user.hivepipe("uninstall", "--purge", "--yes")
    assert "deleted" in output
    assert changed(before, user.files()) == {}


def test_uninstall_keeps_edits_of_the_settings(user: User) -> None:
    with_settings(user)
    before = user.files()
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    edited = user.settings.read_text().replace('"model": "opus"', '"model": "haiku", "x": [1]')
    user.settings.write_text(edited)
    user.play_session()
    output = user.hivepipe("uninstall", "--purge", "--yes")
    assert "edited" in output
    assert user.settings.read_text() == SETTINGS.replace(
        '"model": "opus"', '"model": "haiku", "x": [1]'
    )
    assert list(changed(before, user.files())) == [str(user.settings)]
    assert user.processes() == []
    assert user.sockets() == []


def test_purge_asks_with_sizes_and_no_deletes_nothing(user: User) -> None:
    user.env["HIVEPIPE_AUTOSTART"] = "0"  # no hook may change files meanwhile
    user.hivepipe("init")
    user.fire("SessionStart", source="startup")
    before = user.files()
    done = user.do("hivepipe", "uninstall", "--purge", data="n\n")
    assert done.returncode == 1
    assert "/hivepipe/projects/shop-" in done.stdout
    assert re.search(r"\d+ (bytes|kB|MB)", done.stdout)
    assert changed(before, user.files()) == {}


def test_purge_keeps_other_files_of_the_state_folder(user: User) -> None:
    state = user.project / ".claude-state"
    state.mkdir()
    theirs = {"preferences.md": "tabs\n", "session.yaml": "a: 1\n", ".gitignore": "*.yaml\n"}
    for name, text in theirs.items():
        (state / name).write_text(text)
    user.own(state)
    user.hivepipe("init", "--in-tree")
    user.fire("SessionStart", source="startup")
    assert (state / "logs" / ".gitignore").read_text() == "*\n"
    user.hivepipe("uninstall", "--purge", "--yes")
    assert {path.name: path.read_text() for path in state.iterdir()} == theirs


def test_a_dry_run_a_repeated_init_and_an_uninstall_of_nothing_change_nothing(user: User) -> None:
    before = user.files()
    output = user.hivepipe("init", "--dry-run")
    assert output.count("/hivepipe/hooks/") == len(events_of(None))
    assert changed(before, user.files()) == {}
    user.hivepipe("off")
    user.hivepipe("on")
    assert "nothing to do" in user.hivepipe("uninstall")
    assert changed(before, user.files()) == {}
    user.hivepipe("init")
    before = user.files()
    assert "already" in user.hivepipe("init")
    assert changed(before, user.files()) == {}
    assert "nothing was changed" in user.hivepipe("uninstall", "--dry-run", "--purge")
    assert changed(before, user.files()) == {}


# ---- init
def test_uninstall_after_a_second_init_keeps_edits(user: User) -> None:
    with_settings(user)
    user.hivepipe("init")
    hooks = json.loads(user.settings.read_text())
    del hooks["hooks"]["Stop"]
    hooks["later"] = True
    user.settings.write_text(json.dumps(hooks, indent=4))
    user.hivepipe("init")
    assert "Stop" in user.hooks()
    user.hivepipe("uninstall")
    assert json.loads(user.settings.read_text()) == json.loads(SETTINGS) | {"later": True}


def test_invalid_settings_are_not_changed(user: User) -> None:
    with_settings(user)
    for data, reason in (
        (b'{"a": 1,}', "not valid JSON"),
        (b'{"hooks": []}', "not an object"),
        (b"\xff", "not UTF-8"),
    ):
        user.settings.write_bytes(data)
        before = user.files()
        output = user.hivepipe("init", expect=1)
        assert reason in output
        assert str(user.settings) in output
        assert len(output.splitlines()) == 1
        assert changed(before, user.files()) == {}
    shutil.rmtree(user.settings.parent)
    user.settings.parent.touch()
    assert f"{user.project}/.claude is not a folder" in user.hivepipe("init", expect=1)


@pytest.mark.parametrize("what", ["file", "folder", "project"])
def test_read_only_settings_are_refused_and_nothing_is_created(user: User, what: str) -> None:
    with_settings(user)
    path, mode = {
        "file": (user.settings, 0o444),
        "folder": (user.settings.parent, 0o555),
        "project": (user.project, 0o555),
    }[what]
    if what == "project":
        shutil.rmtree(user.settings.parent)
    path.chmod(mode)
    probe = path if what == "file" else path / "probe"
    assert user.do("sh", "-c", f"echo x >> '{probe}'").returncode, "the file is writable"
    before = user.files()
    assert "read-only" in user.hivepipe("init", expect=1)
    assert changed(before, user.files()) == {}
    path.chmod(0o755)


def test_an_init_without_disk_space_leaves_nothing(user: User) -> None:
    user.hivepipe("init", "--dry-run")  # else Python 3.11 writes a part of each .pyc file
    before = user.files()
    done = user.do("sh", "-c", "ulimit -f 8; exec hivepipe init")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert "manifest.db cannot be used" in done.stderr
    assert changed(before, user.files()) == {}
    user.hivepipe("init")


def test_mode_and_link_of_a_settings_file_are_kept(user: User) -> None:
    real = user.project / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text(SETTINGS)
    real.chmod(0o640)
    user.settings.parent.mkdir()
    user.settings.symlink_to("../dotfiles/claude.json")
    user.own(user.project)
    before = user.files()
    user.hivepipe("init")
    assert user.settings.is_symlink()
    assert "/hivepipe/hooks/" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640
    assert real.stat().st_uid == user.project.stat().st_uid
    user.hivepipe("uninstall")
    assert changed(before, user.files()) == {}


def test_a_link_that_leads_out_of_the_project_is_refused(user: User) -> None:
    victim = user.home / "victim.json"
    victim.write_text("{}")
    user.settings.parent.mkdir()
    user.settings.symlink_to(victim)
    user.own(user.home)
    before = user.files()
    assert "outside the project" in user.hivepipe("init", expect=1)
    assert changed(before, user.files()) == {}


def test_uninstall_follows_no_link_that_replaced_the_settings(user: User) -> None:
    user.hivepipe("init", "--user")
    user.hivepipe("init")
    users = user.home / ".claude/settings.json"
    before = users.read_text()
    user.settings.unlink()
    user.settings.symlink_to(users)  # as a branch may bring it
    output = user.hivepipe("uninstall")
    assert f"{user.settings.name} is a link out of the project now, and stays" in output
    assert users.read_text() == before
    assert user.settings.is_symlink()
    user.hivepipe("uninstall", "--user")
    assert not users.exists()


def test_uninstall_for_the_user_keeps_the_record_of_a_home_in_use(user: User) -> None:
    home = user.home / ".local/state/hivepipe/default"
    user.hivepipe("init", "--user")
    user.hivepipe("init", HIVEPIPE_HOME=str(home))
    record = home.parent / "projects" / short_hash(str(home))
    output = user.hivepipe("uninstall", "--user")
    assert "record" not in output
    assert f"home={home}\n" in record.read_text()
    assert "nothing to do" in user.hivepipe("uninstall", "--user")
    user.hivepipe("uninstall")
    user.hivepipe("uninstall", "--user")
    assert not record.exists()


def test_the_users_home_folder_is_refused_as_project_and_as_home(user: User) -> None:
    user.home.chmod(0o700)
    before = user.files(user.home)
    assert "--user" in user.hivepipe("init", cwd=user.home, expect=1)
    output = user.hivepipe("init", HIVEPIPE_HOME=str(user.project), expect=1)
    assert "contains this project" in output
    assert "all of your files" in user.hivepipe("up", "-d", HIVEPIPE_HOME=str(user.home), expect=1)
    assert changed(before, user.files(user.home)) == {}


def test_hooks_of_all_projects_record_into_one_home(user: User) -> None:
    before = user.files()
    user.hivepipe("init", "--user")
    settings = user.home / ".claude" / "settings.json"
    user.fire("SessionStart", path=settings, source="startup")
    assert list((user.home / ".local/state/hivepipe/default/spool").glob("*.json"))
    assert list(user.project.iterdir()) == []
    assert "--user" in user.hivepipe("uninstall")
    user.hivepipe("uninstall", "--user", "--purge", "--yes")
    assert changed(before, user.files()) == {}


def test_shared_settings_are_silent_where_hivepipe_is_missing(user: User) -> None:
    user.hivepipe("init", "--project")
    shared = user.project / ".claude" / "settings.json"
    assert str(user.home) not in shared.read_text()
    assert user.fire("SessionStart", path=shared, source="startup") == [NEUTRAL]
    assert len(spooled(user)) == 1
    user.env["PATH"] = "/usr/bin:/bin"
    assert user.fire("Stop", path=shared) == [NEUTRAL], "the user's own copy needs no PATH"
    shutil.rmtree(user.home / ".local/state/hivepipe/hooks")
    assert user.fire("Stop", path=shared) == [""]


def test_hivepipe_hook_is_found_through_a_link_and_as_a_wheel_installs_it(
    user: User, folder: Path
) -> None:
    user.hivepipe("init", "--project")
    shared = user.project / ".claude" / "settings.json"
    bin = folder / "bin"
    bin.mkdir()
    (bin / "hivepipe-hook").symlink_to(user.installation.bin / "hivepipe-hook")
    user.env["PATH"] = f"{bin}:/usr/bin:/bin"
    assert user.fire("Stop", path=shared) == [NEUTRAL]
    wheel = folder / "wheel"
    packages = wheel / "lib" / "python3.11" / "site-packages" / "hivepipe"
    shutil.copytree(user.installation.folder / "hivepipe", packages)
    shutil.copytree(user.installation.folder / "hooks", packages / "_hooks")
    (wheel / "bin").mkdir()
    shutil.copy(user.installation.bin / "hivepipe-hook", wheel / "bin")
    (wheel / "bin" / "python").symlink_to(user.installation.bin / "python")
    user.own(wheel)
    user.env["PATH"] = f"{wheel}/bin:/usr/bin:/bin"
    assert user.fire("Stop", path=shared) == [NEUTRAL]


def has_claude(user: User, version: str) -> None:
    """Put a program `claude` that prints this version on the user's PATH."""
    program = user.home / "claude-bin" / "claude"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\necho '{version} (Claude Code)'\n")
    program.chmod(0o755)
    user.env["PATH"] = f"{program.parent}:{user.env['PATH']}"


@pytest.mark.parametrize("scope", ["--local", "--project", "--user"])
def test_only_events_that_claude_code_knows_are_registered(user: User, scope: str) -> None:
    path = {
        "--local": user.settings,
        "--project": user.settings.with_name("settings.json"),
        "--user": user.home / ".claude" / "settings.json",
    }[scope]
    path.parent.mkdir(exist_ok=True)
    path.write_text(SETTINGS)
    user.own(user.home)
    has_claude(user, "2.1.77")
    output = user.hivepipe("init", scope)
    assert "Claude Code 2.1.77 does not know UserPromptExpansion" in output
    old = user.hooks(path)
    assert not {"UserPromptExpansion", "StopFailure"} & set(old)
    has_claude(user, "2.1.330")
    replaced = f"{len(EVENTS)} replace {len(old)} earlier ones"
    output = user.hivepipe("init", scope)
    assert replaced in output
    assert "does not know" not in output
    assert set(user.hooks(path)) >= {event.name for event in EVENTS}
    user.hivepipe("uninstall", *(["--user"] if scope == "--user" else []))
    assert path.read_text() == SETTINGS


def test_without_a_known_version_only_old_events_are_registered(user: User) -> None:
    assert "`claude` is not on PATH" in user.hivepipe("init")
    assert set(user.hooks()) == {event.name for event in EVENTS if not event.since}


def test_a_state_folder_with_a_space_gets_the_shell_form(user: User) -> None:
    user.env["XDG_STATE_HOME"] = f"{user.home}/my state"
    assert "needs quotes" in user.hivepipe("init")
    assert all("args" not in handler for group in user.hooks().values() for handler in group)
    assert user.fire("SessionStart", source="startup") == [NEUTRAL]


# ---- git
@pytest.mark.parametrize("form", [(), ("--in-tree",)], ids=["outside", "in tree"])
def test_git_add_adds_no_file_of_hivepipe(user: User, form: tuple[str, ...]) -> None:
    user.git("init", "-q")
    user.hivepipe("init", *form)
    user.hivepipe("up", "-d")
    user.play_session()
    until(lambda: user.sessions(), "no session was recorded")
    user.git("add", "-A")
    assert user.git("status", "--short") == ""
    user.hivepipe("uninstall")
    ignored = "!! .claude-state/\n!! .hive-mind/\n" if form else ""
    assert user.git("status", "--short", "--ignored") == ignored


@pytest.mark.parametrize("has_folder", [True, False])
def test_an_exclude_file_that_init_made_is_deleted(user: User, has_folder: bool) -> None:
    user.git("init", "-q")
    folder = user.project / ".git" / "info"
    user.do("rm", "-r", str(folder))
    if has_folder:
        user.do("mkdir", str(folder))
    user.hivepipe("init")
    assert "?? .claude" not in user.git("status", "--short")
    below = user.project / "below"
    user.do("mkdir", str(below))
    user.hivepipe("init", cwd=below)
    user.hivepipe("uninstall")
    assert "/below/.claude/settings.local.json" in (folder / "exclude").read_text()
    user.hivepipe("uninstall", cwd=below)
    assert [folder.exists(), (folder / "exclude").exists()] == [has_folder, False]


def test_the_lines_of_others_in_an_exclude_file_are_kept(user: User) -> None:
    user.git("init", "-q")
    exclude = user.project / ".git" / "info" / "exclude"
    for text in ("/.claude/settings.json\n*.tmp", "/.claude/settings.local.json\n"):
        exclude.write_text(text)
        user.own(user.project)
        user.hivepipe("init")
        assert (exclude.read_text() == text) == ("local" in text), "git ignores it already"
        user.git("add", "-A")
        assert user.git("status", "--short") == ""
        user.hivepipe("uninstall")
        assert exclude.read_text() == text
    exclude.unlink()
    user.hivepipe("init")
    exclude.write_text(f"{exclude.read_text()}*.tmp\n")
    user.hivepipe("uninstall")
    assert exclude.read_text() == "*.tmp\n"


def test_init_names_the_line_for_an_exclude_file_that_is_a_link(user: User) -> None:
    user.git("init", "-q")
    shared, exclude = user.home / "ignored", user.project / ".git" / "info" / "exclude"
    shared.write_text("*.tmp\n")
    exclude.unlink()
    exclude.symlink_to(shared)
    user.own(user.home)
    assert "add /.claude/settings.local.json to ~/ignored" in user.hivepipe("init")
    assert shared.read_text() == "*.tmp\n"
    shared.write_text("*.tmp\n# hivepipe init\n/.claude/settings.local.json\n")  # before
    user.own(shared)
    assert "does not ignore" not in user.hivepipe("init")
    user.hivepipe("uninstall")
    assert shared.read_text() == "*.tmp\n"
    assert exclude.is_symlink()


def test_init_names_the_line_for_a_repository_that_git_dir_names(user: User) -> None:
    bare = user.home / "dots.git"
    user.git("init", "-q", "--bare", str(bare))
    user.env |= {"GIT_DIR": str(bare), "GIT_WORK_TREE": str(user.home)}
    line = "/shop/.claude/settings.local.json"
    assert f"add {line} to ~/dots.git/info/exclude" in user.hivepipe("init")
    assert ".claude" in user.git("status", "--short", "-uall")
    (bare / "info" / "exclude").write_text(f"{line}\n")
    assert "does not ignore" not in user.hivepipe("init")
    assert ".claude" not in user.git("status", "--short", "-uall")
    assert "does not ignore" not in user.hivepipe("init", "--project")


def test_init_in_a_git_hook_of_another_repository_ignores_its_git_dir(user: User) -> None:
    other = user.home / "other"
    user.git("init", "-q", str(other))
    user.git("init", "-q")
    user.env["GIT_DIR"] = str(other / ".git")  # as in the hooks of a linked worktree
    said = user.hivepipe("init")
    assert "by a new line in .git/info/exclude" in said
    assert "does not ignore" not in said


def test_committed_local_settings_are_changed_with_a_warning(user: User) -> None:
    user.git("init", "-q")
    with_settings(user)
    user.git("add", "-A")
    assert "git tracks this file" in user.hivepipe("init")


def test_a_worktree_is_recorded_in_its_main_checkout_switched_and_uninstalled_with_it(
    user: User,
) -> None:
    tree = with_worktree(user)
    user.hivepipe("init")
    user.hivepipe("init", cwd=tree)
    local = tree / ".claude" / "settings.local.json"
    user.fire("SessionStart", cwd=tree, path=local, source="startup")
    assert len(spooled(user)) == 1
    assert not (tree / ".hive-mind").exists()
    user.hivepipe("off", cwd=tree)
    user.fire("SessionStart", source="startup", session_id="off")
    assert len(spooled(user)) == 1
    assert user.git("status", "--short", cwd=tree) == ""
    assert "has a copy" not in user.hivepipe("uninstall", "--dry-run")
    user.hivepipe("uninstall", cwd=tree)
    assert not user.settings.exists()
    assert not local.exists()
    assert user.git("status", "--short", cwd=tree) == ""


# ---- off and on
def test_off_stops_recording_at_once_and_on_resumes_it(user: User) -> None:
    user.hivepipe("init")
    user.hivepipe("off")
    before = user.files()
    user.play_session()
    assert changed(before, user.files()) == {}
    assert "switched off" in user.hivepipe("up", "-d", expect=1)
    user.hivepipe("down")
    assert "switched off" in user.hivepipe("init"), "init is no way around it"
    user.play_session()
    assert not list((user.recorded).glob("spool/*"))
    user.hivepipe("on")
    user.fire("SessionStart", source="startup")
    assert len(spooled(user)) == 1


def test_off_opts_a_project_out_of_the_shared_home(user: User) -> None:
    user.hivepipe("init", "--user")
    settings = user.home / ".claude" / "settings.json"
    user.hivepipe("off")
    user.fire("SessionStart", path=settings, source="startup")
    assert not list(user.home.glob(".local/state/hivepipe/default/spool/*"))
    user.hivepipe("on")
    user.fire("SessionStart", path=settings, source="startup")
    assert len(list(user.home.glob(".local/state/hivepipe/default/spool/*.json"))) == 1


def test_uninstall_removes_hooks_from_copies_in_worktrees(user: User) -> None:
    """`claude -w` and users copy settings.local.json into a new worktree."""
    user.git("init", "-q")
    user.git("commit", "-q", "--allow-empty", "-m", "first")
    user.hivepipe("init")
    trees = [user.home / "tree one", user.home / "tree", user.home / "link"]
    mine = json.loads(user.settings.read_text()) | {"model": "opus"}
    outside = user.home / "outside.json"
    for number, tree in enumerate(trees):
        user.git("worktree", "add", "-q", "-b", f"branch-{number}", str(tree))
        (tree / ".claude").mkdir()
        (tree / ".claude" / "settings.json").write_text('{"model": "haiku"}')
        user.own(tree)
    copy, plain, link = (tree / ".claude" / "settings.local.json" for tree in trees)
    copy.write_text(json.dumps(mine, indent=2))
    plain.write_text('{"model": "opus"}')
    outside.write_text(copy.read_text())
    link.symlink_to(outside)
    for path in (copy, plain, outside):
        user.own(path)
    before = copy.read_text()

    assert str(copy.name) in user.hivepipe("uninstall", "--dry-run")
    assert copy.read_text() == before

    output = user.hivepipe("uninstall")
    assert "tree one/.claude/settings.local.json" in output
    assert json.loads(copy.read_text()) == {"model": "opus"}
    assert plain.read_text() == '{"model": "opus"}'
    assert json.loads(outside.read_text()) == mine
    assert "has a copy of them" in output  # the link leads out of its worktree


def test_uninstall_names_no_worktree_that_shares_the_settings(user: User) -> None:
    tree = with_worktree(user)
    user.hivepipe("init")
    (tree / ".claude").symlink_to(user.settings.parent)
    for words in (("--dry-run",), ()):
        assert "has a copy of them" not in user.hivepipe("uninstall", *words)


def test_uninstall_names_hooks_committed_in_worktrees(user: User) -> None:
    tree = with_worktree(user, "tree one")
    user.hivepipe("init")
    shared = tree / ".claude" / "settings.json"
    shared.parent.mkdir()
    shared.write_text(user.settings.read_text())
    user.own(tree)
    before = shared.read_text()
    for words in (("--dry-run",), ()):
        output = user.hivepipe("uninstall", *words)
        assert output.count("has a copy of them") == 1
        assert f"cd '{tree}' && hivepipe uninstall" in output
    assert shared.read_text() == before
    assert "has a copy of them" in user.hivepipe("uninstall")  # the only thing left to do
    assert user.do("sh", "-c", f"cd '{tree}' && hivepipe uninstall").returncode == 0
    assert "hooks" not in json.loads(shared.read_text())
    assert "has a copy" not in user.hivepipe("uninstall")


# ---- long paths
@pytest.mark.parametrize("kept", ["config.toml", "spool/1_1.json", "archive/x.jsonl"])
def test_a_home_with_recorded_files_is_not_removed_as_unused(user: User, kept: str) -> None:
    user.hivepipe("init")
    path = user.recorded / kept
    path.parent.mkdir(exist_ok=True)
    path.write_text("{}")
    user.own(user.recorded)
    user.hivepipe("up", "-d", HIVEPIPE_AUTOSTART="0")
    output = user.hivepipe("uninstall")
    if not kept.startswith("archive"):
        assert "kept" in output
    assert path.exists() or kept.endswith("1_1.json")  # the stack applied the event
    assert path.parent.exists()
