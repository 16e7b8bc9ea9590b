"""Programs are found in absolute folders of PATH only, and git runs none of a repository."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from hivepipe import git, programs
from hivepipe.install import claude_code, git_exclude
from hivepipe.operations.identity_files import is_tracked
from hivepipe.orchestrator.command import claude
from hivepipe.programs import find_program, running
from hivepipe.settings import inherited
from hivepipe.stack.redis_server import find_server


def program(path: Path, proof: Path) -> None:
    """Write a program that creates the proof when it runs."""
    path.write_text(f"#!/bin/sh\ntouch '{proof}'\necho 2.1.0 server v=9.9.9\n")
    path.chmod(0o755)


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change into a clone that ships programs. Return the file that they create when they run."""
    proof = tmp_path / "proof"
    clone = tmp_path / "clone"
    for folder in (clone, clone / "node_modules" / ".bin"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("git", "claude", "pm2", "redis-server", "valkey-server"):
            program(folder / name, proof)
    monkeypatch.chdir(clone)
    monkeypatch.setenv("PATH", f".:./node_modules/.bin::{os.environ['PATH']}:node_modules/.bin")
    return proof


def test_relative_entries_of_path_are_ignored(shipped: Path, tmp_path: Path) -> None:
    assert find_program("pm2") is None or "clone" not in str(find_program("pm2"))
    assert str(find_program("git")).startswith("/")
    find_server()
    claude_code.version()
    git.answer(".", "--version")
    assert not shipped.exists()
    subprocess.run(["sh", "-c", "git --version"], check=True, stdout=subprocess.DEVNULL)
    assert shipped.exists(), "the shell runs a shipped program"
    assert find_program("./claude") == f"{tmp_path}/clone/claude"
    assert find_program("./missing") is None
    odd = tmp_path / "a:node_modules" / ".bin"  # a colon ends no entry of a path
    odd.mkdir(parents=True)
    assert find_program(f"{odd}/claude") is None
    program(odd / "claude", shipped)
    assert find_program(f"{odd}/claude") == f"{odd}/claude"


def test_a_worker_is_not_started_with_the_clones_claude(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "bin"
    own.mkdir()
    (own / "claude").symlink_to("/bin/true")
    monkeypatch.setenv("PATH", f"./node_modules/.bin:{own}")
    assert claude() == f"{own}/claude"


def test_without_any_absolute_folder_there_is_no_path(
    shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = os.fsdecode(inherited()[b"PATH"]).split(":")
    assert folders
    assert all(folder.startswith("/") for folder in folders)
    monkeypatch.setenv("PATH", ".:bin")
    assert b"PATH" not in inherited()
    assert find_program("sh") is None


def test_a_folder_that_is_not_utf_8_is_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIVEPIPE_HOME", "/tmp/\udcff")
    assert inherited()[b"HIVEPIPE_HOME"] == b"/tmp/\xff"


def repository(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    plain = ["git", "-c", "init.defaultBranch=main", "-C", str(folder)]
    subprocess.run([*plain, "init", "--quiet"], check=True)
    return folder


def test_a_program_named_by_a_repository_is_not_run(tmp_path: Path) -> None:
    clone, proof = repository(tmp_path / "clone"), tmp_path / "proof"
    monitor = clone / "monitor"
    program(monitor, proof)
    subprocess.run(["git", "-C", str(clone), "config", "core.fsmonitor", str(monitor)], check=True)
    (clone / "SOUL.md").write_text("x")
    git_exclude.is_ignored(str(clone / ".claude" / "settings.local.json"))
    assert is_tracked(clone / "SOUL.md") is False
    assert git.tracked_files(str(clone), ".") == []
    assert not proof.exists()


def test_a_missing_object_is_not_fetched_by_the_program_of_a_repository(tmp_path: Path) -> None:
    """`check-ignore` reads a `.gitignore` that is left out of the work tree from the objects."""
    clone, proof = repository(tmp_path / "clone"), tmp_path / "proof"
    program(clone / "fetch", proof)
    (clone / ".gitignore").write_text("x")

    def run_git(*words: str) -> str:
        command = ["git", "-C", str(clone), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    run_git("add", ".gitignore")
    name = run_git("rev-parse", ":.gitignore")
    run_git("update-index", "--skip-worktree", ".gitignore")
    (clone / ".gitignore").unlink()
    (clone / ".git" / "objects" / name[:2] / name[2:]).unlink()
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.url": "a@b:c",
        "core.sshCommand": str(clone / "fetch"),
    }
    for key, value in settings.items():
        run_git("config", key, value)
    git_exclude.is_ignored(str(clone / ".claude" / "settings.local.json"))
    assert not proof.exists()


def test_a_folder_that_looks_like_a_bare_repository_runs_nothing(tmp_path: Path) -> None:
    """The folder of a profile in a clone contains HEAD, config, objects and refs."""
    clone, proof = repository(tmp_path / "clone"), tmp_path / "proof"
    program(clone / "run.sh", proof)
    bare = clone / "agents" / "bob"
    for name in ("objects", "refs"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    config = f'[core]\n\tbare = false\n\tworktree = "{clone}"\n\tfsmonitor = "{clone}/run.sh"\n'
    (bare / "config").write_text(config)
    (bare / "SOUL.md").write_text("x")
    assert is_tracked(bare / "SOUL.md") is True, (
        "an unknown file counts as tracked, so that nothing is written"
    )
    assert not proof.exists()


def test_the_variables_of_a_git_hook_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone, other = repository(tmp_path / "clone"), repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    settings = str(clone / ".claude" / "settings.local.json")
    assert git_exclude.exclude_file(settings) == f"{clone}/.git/info/exclude"


@pytest.mark.parametrize("error", [ImportError, KeyboardInterrupt])  # an upgrade, a second Ctrl-C
def test_a_program_is_ended_even_if_its_children_cannot_be_found(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(name: str) -> None:
        raise error(name)

    monkeypatch.setattr(programs, "import_module", interrupt)
    with pytest.raises(error), running(["sleep", "600"]) as child:
        assert child.code is None
    assert child.code == -signal.SIGKILL
