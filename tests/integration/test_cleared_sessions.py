"""The sweep, search and other commands for a session that shows each of its secrets only once."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from tests.archive_scene import AGENT, SESSION
from tests.conftest import Home, untagged
from tests.integration.test_cli_listings import command
from tests.learned_secrets import Secrets, agent_lines, environment, main_lines, secrets
from tests.unit.test_found_values import TAG, remaining_secrets

OF = secrets("sweep")


def moved_to(project: Path, raw: bytes) -> bytes:
    return json.dumps({**json.loads(raw), "cwd": str(project)}, ensure_ascii=False).encode() + b"\n"


@pytest.fixture
def home(private_home: Home) -> Home:
    command(private_home, "init", "--local", "--no-probe")
    folder = private_home.root / ".claude" / "projects" / "-shop"
    agents = folder / SESSION / "subagents"
    agents.mkdir(parents=True)
    for path, lines in (
        (folder / f"{SESSION}.jsonl", main_lines(OF)),
        (agents / f"agent-{AGENT}.jsonl", agent_lines(OF)),
    ):
        path.write_bytes(b"".join(moved_to(private_home.project, each) for each in lines))
    return private_home


def settle(home: Home) -> None:
    long_ago = time.time() - 7200
    for path in (home.root / ".claude").rglob("*.jsonl"):
        os.utime(path, (long_ago, long_ago))
    command(home, "archive", "sweep")


def kept_secrets(of: Secrets, home: Home) -> list[tuple[str, str]]:
    return remaining_secrets(of, home.kept) + remaining_secrets(of, home.path)


def test_no_secret_is_left_and_other_text_is_found(home: Home) -> None:
    command(home, "archive", "sweep")
    assert json.loads(command(home, "search", "--json", OF.agents))["total"] > 0
    assert kept_secrets(OF, home)
    at_once = command(home, "transcript", SESSION, "--markdown")
    assert not [secret for secret in OF if secret in at_once]
    settle(home)
    assert kept_secrets(OF, home) == []
    for secret in OF:
        assert json.loads(command(home, "search", "--json", secret))["total"] == 0
    (hit,) = json.loads(command(home, "search", "--json", "call the API"))["hits"]
    shown = command(home, "transcript", SESSION, "--around", str(hit["offset"]))
    assert "I'll call the API with ***REDACTED:api-key:" in shown
    assert untagged(shown).count("***REDACTED***") > 8
    assert "0 with problems" in command(home, "archive", "verify")
    assert "the index was correct" in command(home, "archive", "rebuild-index")
    audit = (home.kept / "security-audit.log").read_text()
    assert f"of session {SESSION} of what was found later" in audit


def test_redact_removes_a_secret_from_the_following_text(home: Home) -> None:
    path = home.root / "text"
    path.write_text(json.dumps(environment(OF)) + "\n" + json.dumps(f"call {OF.shop}") + "\n")
    shown = command(home, "redact", str(path))
    assert OF.shop not in shown
    assert len({tag for _, tag in TAG.findall(shown)}) == 6


def test_a_backup_holds_no_hash_of_a_secret(home: Home) -> None:
    settle(home)
    assert list(home.kept.rglob(".*.learned"))
    command(home, "backup", str(home.root / "b.tar.gz"))
    folder = home.root / "unpacked"
    shutil.unpack_archive(home.root / "b.tar.gz", folder)
    assert list(folder.rglob("*.jsonl"))
    assert list(folder.rglob("*learned*")) == []


def test_forget_deletes_the_learned_hashes_of_a_session(home: Home) -> None:
    command(home, "archive", "sweep")
    settle(home)
    log = home.kept / "security-audit.log"
    assert "Cleared" in log.read_text()
    log.rename(home.kept / f"{log.name}.2026-11-01")
    command(home, "forget", SESSION, "--yes")
    assert list(home.kept.rglob("*.learned")) == []
    assert SESSION not in (home.kept / f"{log.name}.2026-11-01").read_text()
