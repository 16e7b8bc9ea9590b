"""A device, a pipe, a socket or an endless file instead of a regular file blocks no command."""

import itertools
import os
import resource
import shutil
import socket
from pathlib import Path

import pytest

from tests.conftest import COMMANDS, Home
from tests.hive_scene import Scene

MEMORY = (resource.RLIMIT_AS, (3 << 30, 3 << 30))
LIMIT_SECS = 90


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening_socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # the path of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


def endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


# `backup` copies everything, even a terabyte, so an endless file is not among the others.
KINDS = {"blocking": (device, pipe, listening_socket), "endless": (endless,)}
# Files below the home folder and below the project that a clone, a worker or a program may create.
OF_THE_USER = (
    ".claude.json",
    ".claude/settings.json",
    ".config/hivepipe/prices.toml",
    ".claude/projects/-shop/memory/one.md",
    ".codex/auth.json",
    "profile/SOUL.md",
    "profile/CLAUDE.md",
)
OF_THE_PROJECT = (
    ".claude/settings.json", ".claude/settings.local.json", ".claude-state/preferences.md",
    ".claude-state/progress.md", ".hive-mind/hive.db", ".hive/projects.json",
    ".hive/prompts/worker.md", ".hive/prompts/park.md", ".hive/learnings/patterns.md",
    ".hive/workers/project-a-1/status.json", ".hive/workers/project-a-1/run-report.md",
    ".hive/workers/project-a-1/session-id", ".hive/workers/project-a-1/task.md",
    ".hive/workers/project-a-1/transcript.jsonl", "queue/1-1.json",
)  # fmt: skip
OF_THE_HOME = (
    "logs/writer.log",
    "lost-events",
    "logs/deletions.jsonl",
    "spool/00000000000000000001_7.json",
    "config.toml",
)
KEPT = ("archive-index.json", "main-session/2026-01-10/one.meta.json")
COMMANDS_TO_RUN = (
    ["doctor"],
    ["status"],
    ["what"],
    ["init", "--dry-run"],
    ["uninstall", "--dry-run"],
    ["migrate", "--dry-run"],
    ["config"],
    ["costs"],
    ["context"],
    ["archive", "list"],
    ["archive", "verify"],
    ["archive", "sweep"],
    ["drain"],
    ["logs"],
    ["memory", "list"],
    ["disk"],
    ["import-queue", "queue", "--dry-run"],
    ["forget", "--matching", "something", "--dry-run"],
    ["hive", "check"],
    ["hive", "check", "project-a-1"],
    ["hive", "transcript", "project-a-1"],
    ["hive", "learnings"],
    ["hive", "spawn", "project-a", "Do it."],
    ["hive", "archive", "project-a-1"],
    ["backup", "kept.tar.gz"],
)


@pytest.mark.parametrize("kinds", KINDS)
def test_no_command_blocks_on_a_special_file(private_home: Home, kinds: str) -> None:
    """All commands read files in one way, so each file is of one blocking kind only."""
    scene = Scene(private_home)
    scene.begin()
    (private_home.path).mkdir(exist_ok=True)
    kind = itertools.cycle(KINDS[kinds])
    for root, names in (
        (private_home.root, OF_THE_USER),
        (private_home.project, OF_THE_PROJECT),
        (private_home.path, OF_THE_HOME),
        (private_home.kept, KEPT),
    ):
        for name in names:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            next(kind)(path)
    env = {**scene.env, "HIVEPIPE_PROFILE_DIR": str(private_home.root / "profile")}
    for words in COMMANDS_TO_RUN:
        if kinds == "endless" and words[0] == "backup":
            continue
        done = COMMANDS.run(words, "", env, private_home.project, LIMIT_SECS, [MEMORY])
        output = done.stdout + done.stderr
        assert "Traceback" not in output, (words, output)
        assert "MemoryError" not in output, (words, output)
        assert done.returncode in (0, 1), (words, output)
    scene.end()
    shutil.rmtree(private_home.root / "profile")
