"""After `uninstall --purge` all files are unchanged, except those that the client writes."""

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.environment import client_environment, needs_claude, settle, version
from tests.real.person import Person
from tests.real.scenarios import bash
from tests.real.script import Say, Script

pytestmark = needs_claude
WORK = Script("work", [[bash("echo one")], [Say("One is done, quokka.")]])
OWN_HOOK = '"Stop": [{"hooks": [\n{"type":"command","command":"true"}]}]'
ODD = f'{{\n\t"env": {{"FOO":  "bar"}},\n\t"hooks": {{{OWN_HOOK}}}\n}}'
OWN = {  # settings of the user, in a layout that no program writes
    "local": ("--local", ".claude/settings.local.json"),
    "project": ("--project", ".claude/settings.json"),
    "user": ("--user", "../.claude/settings.json"),
}
SETTINGS = ("settings.json", "settings.local.json")


def is_the_clients(path: Path) -> bool:
    """Return whether the client writes a path even without hooks; settings do not count."""
    parts = path.parts
    is_of_client = parts[0] in (".cache", ".npm") or parts[0].startswith(".claude.json")
    # This file names the client's process.
    is_of_client = is_of_client or path.match(".git/worktrees/*/locked")
    return is_of_client or (parts[0] == ".claude" and path.name not in SETTINGS)


def files(person: Person) -> Iterator[tuple[str, str]]:
    """Yield each path below HOME with its content; folders of Git objects are left out."""
    for path in sorted(person.home.rglob("*")):
        inner = path.relative_to(person.home)
        if is_the_clients(inner) or ("objects" in inner.parts and ".git" in inner.parts):
            continue
        if path.is_symlink():
            yield str(inner), str(path.readlink())
        elif path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            yield str(inner), f"{path.stat().st_mode:o} {digest}"
        else:
            yield str(inner), f"{path.stat().st_mode:o}"


def git(person: Person, *words: str) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    done = subprocess.run(["git", *who, *words], cwd=person.project, check=False)
    assert done.returncode == 0, words


@pytest.mark.parametrize("has_own", [True, False], ids=["beside-own", "alone"])
@pytest.mark.parametrize("kind", OWN)
def test_uninstall_restores_every_file_byte_for_byte(kind: str, has_own: bool) -> None:
    option, path = OWN[kind]
    uninstalled = [option] if kind == "user" else []
    with client_environment(WORK, init=(), is_recorded=False) as person:
        if has_own:
            person.write(path, ODD)
        person.write("README.md", "A shop.\n")
        git(person, "add", "-A")
        git(person, "commit", "-q", "--allow-empty", "-m", "First")
        git(person, "worktree", "add", "-q", str(person.home / "own-tree"))
        # The client creates its files for a worktree, with or without hooks.
        person.ask(WORK.prompt("Please work"), "-w", "side")
        before = dict(files(person))
        person.hivepipe("init", "--no-probe", option)
        person.ask(WORK.prompt("Please work"))
        person.ask(WORK.prompt("Please work"), "-w", "side")
        settle(person)
        # A worktree has committed files. From 2.1.330 on the client copies local settings into it.
        is_copied = kind == "local" and version() >= (2, 1, 330)
        recorded = 2 if is_copied or kind == "user" else 1
        assert len(person.json("sessions", "--all")["sessions"]) == recorded
        person.hivepipe("down")
        person.hivepipe("uninstall", *uninstalled, "--purge", "--yes")
        after = dict(files(person))
        assert {path: after.get(path) for path in before} == before
        assert sorted(after.keys() - before.keys()) == []
