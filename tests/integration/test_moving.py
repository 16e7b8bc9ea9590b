"""The steps of docs/moving.md, run in the folders that the page means, lose no recorded event."""

import shlex
import shutil
from pathlib import Path

import pytest

from tests.conftest import ROOT, hashed, until
from tests.installed import Installation, User, changed
from tests.integration.test_readme import steps

# Folders in which steps are run; steps that begin in a certain way change the folder.
ANOTHER_MACHINE, OLD_PLACE, NEW_PLACE = "new/shop", "shop", "src/shop"


def test_upgrade_backup_and_both_moves_keep_what_was_recorded(
    installation: Installation, folder: Path
) -> None:
    user = User(folder, installation)
    (user.home / "src").mkdir()
    (user.home / ANOTHER_MACHINE).mkdir(parents=True)
    user.own(user.home)
    try:
        user.hivepipe("init")
        user.play_session()
        until(lambda: ids(user, OLD_PLACE) == {"s1"}, "nothing was recorded")
        place = OLD_PLACE
        for step in steps(ROOT / "docs" / "moving.md"):
            place = run_step(user, step, place)
            if step.startswith(("hivepipe restore", "hivepipe init --adopt")):
                until(lambda at=place: ids(user, at) == {"s1"}, step)  # type: ignore[misc]
        assert place == NEW_PLACE
    finally:
        user.end_all()


def test_a_renamed_project_gets_its_home_and_not_a_second_one(user: User) -> None:
    record(user, "before")
    user.hivepipe("down")
    renamed = user.home / "s r c"
    user.project.rename(renamed)
    fire(user, renamed, "since")
    command = f"hivepipe move-home --from {user.project}"
    before = user.files(user.home)
    for words in (("up", "-d"), ("init",), ("init", "--dry-run"), ("doctor",)):
        assert f"`{command}`" in " ".join(user.hivepipe(*words, cwd=renamed, expect=1).split())
    assert changed(before, user.files(user.home)) == {}
    user.hivepipe(*command.split()[1:], cwd=renamed)
    user.hivepipe("up", "-d", cwd=renamed)
    until(lambda: ids(user, renamed.name) == {"before", "since"}, "an event is lost")


def test_a_renamed_project_finds_its_home_again_after_an_uninstall(user: User) -> None:
    record(user, "before")
    place = user.project
    for name in ("first", "second"):
        renamed = place.rename(user.home / name)
        user.hivepipe("move-home", "--from", str(place), cwd=renamed)
        place = renamed
    user.hivepipe("uninstall", cwd=place)
    user.hivepipe("init", cwd=place)
    assert ids(user, place.name) == {"before"}
    user.hivepipe("uninstall", cwd=place)
    user.hivepipe("uninstall", "--purge", "--yes", cwd=place)
    assert not (user.home / ".local/share/hivepipe").exists()


def test_a_home_that_a_renamed_project_began_does_not_hide_the_old_one(user: User) -> None:
    record(user, "before")
    user.hivepipe("uninstall")
    renamed = user.project.rename(user.home / "renamed")
    user.hivepipe("init", cwd=renamed)
    user.hivepipe("move-home", "--from", str(user.project), cwd=renamed)
    user.hivepipe("uninstall", cwd=renamed)
    user.hivepipe("init", cwd=renamed)
    assert ids(user, renamed.name) == {"before"}


def test_a_renamed_project_that_shares_a_home_gets_no_link_to_it(user: User) -> None:
    shared = user.home / "shared"
    user.hivepipe("init", HIVEPIPE_HOME=str(shared))
    renamed = user.project.rename(user.home / "renamed")
    user.hivepipe("move-home", "--from", str(user.project), cwd=renamed)
    assert user.hivepipe("home", cwd=renamed).strip() == str(shared)
    assert not list(user.home.glob(".local/share/hivepipe/projects/*"))


def test_a_copy_of_a_project_gets_a_home_of_its_own(user: User) -> None:
    record(user, "of-the-original")
    other, copy = user.home / "other", user.home / "copy"
    shutil.copytree(user.project, other)
    user.own(other)
    user.hivepipe("up", "-d", cwd=other)
    user.hivepipe("init", cwd=other)
    fire(user, other, "of-the-other")
    until(lambda: ids(user, other.name) == {"of-the-other"}, "the copy has no home of its own")
    other.rename(copy)
    shutil.rmtree(user.project)
    both = " or ".join(sorted(map(str, (user.project, other))))
    said = user.hivepipe("up", "-d", cwd=copy, expect=1)
    assert f"`hivepipe move-home --from OLD` (OLD: {both})" in said
    user.hivepipe("uninstall", cwd=copy)  # as the message says
    user.hivepipe("init", cwd=copy)
    user.hivepipe("up", "-d", cwd=copy)
    assert ids(user, copy.name) == set()


def test_hooks_of_another_machine_or_of_a_clone_are_not_of_a_renamed_project(user: User) -> None:
    user.hivepipe("init")
    clone, foreign = user.home / "clone", user.home / "foreign"
    for folder in (clone, foreign):
        shutil.copytree(user.project, folder)
        user.own(folder)
    user.git("init", cwd=clone)
    user.git("add", "--force", ".claude", cwd=clone)
    settings = foreign / ".claude/settings.local.json"
    settings.write_text(settings.read_text().replace(str(user.home), "/home/another"))
    shutil.rmtree(user.project)
    for folder in (clone, foreign):
        user.hivepipe("up", "-d", cwd=folder)
        user.hivepipe("init", cwd=folder)


def test_a_copy_is_registered_as_the_refusal_says_although_a_project_is_missing(user: User) -> None:
    gone, copy = user.home / "gone", user.home / "copy"
    gone.mkdir()
    user.own(gone)
    for folder in (user.project, gone):
        user.hivepipe("init", cwd=folder)
    shutil.copytree(user.project, copy)
    user.own(copy)
    shutil.rmtree(gone)
    said = user.hivepipe("up", "-d", cwd=copy, expect=1)
    assert "If it is a copy: `hivepipe uninstall`, then `hivepipe init`" in said
    user.hivepipe("uninstall", cwd=copy)
    user.hivepipe("init", cwd=copy)


def test_adopt_takes_the_data_of_a_copy_although_a_project_is_missing(user: User) -> None:
    user.hivepipe("init", "--in-tree")
    record(user, "before")
    user.hivepipe("down")
    copy = user.home / "copy"
    shutil.copytree(user.project, copy)
    user.own(copy)
    shutil.rmtree(user.project)
    assert "move-home --from" in user.hivepipe("init", cwd=copy, expect=1)
    user.hivepipe("init", "--adopt", cwd=copy)
    assert ids(user, copy.name) == {"before"}


def test_a_linked_folder_of_the_users_data_may_hold_the_home_of_data_in_a_tree(user: User) -> None:
    share = user.home / "share"
    share.mkdir()
    (user.home / ".local").mkdir()
    (user.home / ".local/share").symlink_to(share)
    user.own(user.home)
    user.hivepipe("init", "--in-tree")


def test_a_refused_registration_makes_no_home(user: User) -> None:
    (user.project / ".hive-mind/spool").mkdir(parents=True)
    user.own(user.project)
    for words in (("init",), ("up", "-d")):
        user.hivepipe(*words, expect=1)
        assert not list(user.home.rglob("hivepipe/*"))
        assert not list(user.run_folder.iterdir())


def test_a_database_in_a_tree_without_its_home_is_used_by_adopt_only(user: User) -> None:
    """As in a project's folder that was copied to another machine."""
    user.hivepipe("init", "--in-tree")
    fire(user, user.project, "before")
    until(lambda: ids(user, OLD_PLACE) == {"before"}, "the event is lost")
    user.hivepipe("down")
    for name in (".local/share/hivepipe", ".local/state/hivepipe"):
        shutil.rmtree(user.home / name)
    for words in (("init",), ("up", "-d")):
        assert "add --adopt" in user.hivepipe(*words, expect=1)
    user.hivepipe("up", "-d", "--adopt")
    assert ids(user, OLD_PLACE) == {"before"}


def test_a_home_beside_a_left_folder_is_used_after_an_uninstall(user: User) -> None:
    record(user, "before")
    user.hivepipe("uninstall")
    (user.project / ".hive-mind/spool").mkdir(parents=True)
    user.own(user.project)
    user.hivepipe("init")
    assert ids(user, OLD_PLACE) == {"before"}
    said = user.hivepipe("init", "--adopt", expect=1)
    assert f"{user.recorded} has a database of its own" in said


def test_a_renamed_home_of_1_0_0_is_adopted_with_the_events_since(user: User) -> None:
    user.has_a_home_of_1_0()
    renamed = user.home / "src"
    user.project.rename(renamed)
    settings = renamed / ".claude/settings.local.json"
    user.fire("SessionStart", renamed, settings, source="startup")
    said = user.hivepipe("doctor", cwd=renamed, expect=1)
    assert "repair: hivepipe init --adopt" in said
    assert "move-home" not in said, "it refuses such a home"
    user.hivepipe("up", "-d", "--adopt", cwd=renamed)
    until(lambda: user.sessions(renamed), "the event is lost")


def test_a_home_of_1_0_0_is_not_moved_over_what_was_recorded_since(user: User) -> None:
    record(user, "before")
    user.hivepipe("down")
    home = user.project / ".hive-mind"
    user.recorded.rename(home)
    (home / ".gitignore").write_text("*\n")
    shutil.rmtree(user.home / ".local/state/hivepipe/projects")
    beside = user.home / "beside"
    home.rename(beside)
    record(user, "since")
    user.hivepipe("down")
    beside.rename(home)
    user.hivepipe("up", "-d")  # a branch may bring such a folder
    for words in (("up", "-d", "--adopt"), ("init", "--adopt")):
        assert f"{user.recorded} has a database of its own" in user.hivepipe(*words, expect=1)
    assert [session["id"] for session in user.sessions()] == ["since"]
    user.hivepipe("down")  # a running writer would make the database again
    user.recorded.rename(beside)
    user.hivepipe("up", "-d", "--adopt")
    record(user, "after")
    assert {session["id"] for session in user.sessions()} == {"after", "before"}


def fire(user: User, folder: Path, session: str) -> None:
    settings = folder / ".claude/settings.local.json"
    user.fire("SessionStart", folder, settings, source="startup", session_id=session)


def record(user: User, session: str) -> None:
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    user.fire("SessionStart", source="startup", session_id=session)
    until(lambda: session in {each["id"] for each in user.sessions()}, f"{session} is lost")


@pytest.mark.parametrize("register", [("init",), ("up", "-d")])
def test_events_from_before_a_registration_are_stored_unless_the_default_home_does(
    user: User, register: tuple[str, ...]
) -> None:
    """As with the plugin, or with hooks that came with a clone."""
    first, other = user.home / "first", user.home / "other"
    first.mkdir()
    other.mkdir()
    user.own(user.home)
    user.hivepipe("init", cwd=first)
    hooks = first / ".claude/settings.local.json"
    for session, place in (("theirs", other), ("early", user.project)):
        user.fire("SessionStart", place, hooks, source="startup", session_id=session)
        call = {"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": "ls"}}
        user.fire("PreToolUse", place, hooks, session_id=session, **call)
    waiting = user.home / ".local/state/hivepipe/default/spool"
    assert len(list(waiting.iterdir())) == 2
    open_folder = user.run_folder / "hivepipe" / hashed(waiting.parent)  # anybody can enter it
    shutil.copytree(waiting, open_folder / "spool")
    open_folder.chmod(0o755)
    user.own(user.run_folder)
    user.hivepipe(*register)
    assert len(list((open_folder / "spool").iterdir())) == 2, "an event of anybody was taken"
    shutil.rmtree(open_folder)  # a stack refuses it
    assert len(list(waiting.iterdir())) == 1, "an event of another folder was taken"
    user.hivepipe("up", "-d")
    until(lambda: [each["calls"] for each in user.sessions()] == [1], "an event is lost")
    (notes,) = waiting.parent.glob("call-notes.*")
    assert b'"theirs"' in notes.read_bytes(), "a call of another folder was taken"
    growing = waiting.parent / "call-notes"
    growing.write_bytes(notes.read_bytes())
    user.own(growing)
    user.hivepipe("up", "-d")
    assert growing.exists(), "each `up` sets notes aside, so their size has no limit"
    user.hivepipe("init", "--user")
    user.hivepipe("init", cwd=other)
    assert len(list(waiting.iterdir())) == 1, "the default home's event was taken"


def run_step(user: User, step: str, place: str) -> str:
    """Run a step in its folder, and return the folder of the next step."""
    words = [word.replace("~", str(user.home)) for word in shlex.split(step, comments=True)]
    if words == ["hivepipe", "init"] and (user.home / "shop-hivepipe.tar.gz").exists():
        place = ANOTHER_MACHINE
    if words[1] == "uninstall" and place == ANOTHER_MACHINE:
        place = OLD_PLACE  # the last section begins in an installed project
        user.hivepipe("init", "--adopt")
    if words[0] == "cd":
        return NEW_PLACE
    folder = user.home / place
    if words[-1].startswith("hivepipe-2026-"):
        (words[-1],) = (path.name for path in folder.glob("hivepipe-2*.tar.gz"))
    done = user.do(*words, cwd=folder)
    assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    return place


def ids(user: User, place: str) -> set[str]:
    return {session["id"] for session in user.sessions(user.home / place)}
