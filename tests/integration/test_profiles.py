"""Profiles: each session belongs to one, and all versions of its files are kept."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hivepipe.cli.main import main
from hivepipe.hook.identity_snapshots import keep
from tests import payloads
from tests.conftest import Home, Process, Server, Writer, hook_answer, jobs, until
from tests.hook_contract import checked
from tests.outcome import outcome_of
from tests.payloads import changed

SOUL = "I am Ana. I look after the checkout of the shop, and I write tests before code. " * 2


class Scene:
    """The workers of a home, and sessions of the profile ana, each in a folder."""

    def __init__(self, home: Home, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.server = server
        self.monkeypatch = monkeypatch

    def folder(self, name: str, **files: str) -> Path:
        """Create a folder with these files, named without their .md."""
        folder = self.home.root / name
        folder.mkdir(exist_ok=True)
        for stem, text in files.items():
            (folder / f"{stem}.md").write_text(text)
        return folder

    def fire(self, event: dict[str, Any], session: str, folder: Path, **more: str) -> str:
        variables = {"AGENT_ID": "ana", "INSTANCE_ID": f"inst-{session}", **more}
        self.home.set(profile_dir=str(folder))
        env = self.home.with_env(**variables)
        name = event["hook_event_name"]
        return hook_answer(name, changed(event, session_id=session), env)

    def start(self, session: str, folder: Path, **more: str) -> None:
        self.fire(payloads.SESSION_START, session, folder, **more)

    def write(self, session: str, folder: Path, name: str, text: str) -> None:
        (folder / name).write_text(text)
        wrote = {"file_path": str(folder / name), "content": text}
        call = f"toolu_{session}_{len(text)}_{text[:3].strip()}"
        self.fire(changed(payloads.POST_WRITE, tool_input=wrote, tool_use_id=call), session, folder)

    def end(self, session: str, folder: Path) -> None:
        self.fire(payloads.SESSION_END, session, folder)
        self.settle()

    def settle(self) -> None:
        """Wait until every job is done, including follow-ups of slow jobs."""
        until(lambda: not self._waiting(), "jobs of profiles wait")

    def _waiting(self) -> list[str]:
        with self.server.client() as client:
            return [str(path) for path in self.home.spool] + [
                description.decode()
                for _, status, description, _ in jobs(client)
                if status not in (b"finished", None) and not description.startswith(b"archive")
            ]

    def versions(self, name: str = "SOUL.md") -> list[tuple[str, str]]:
        """Return source and text of each version, oldest first."""
        sql = f"SELECT * FROM identity_versions WHERE name = '{name}' ORDER BY time_ns, id"
        return [(row["change_source"], row["text"]) for row in self.home.rows(sql)]

    def run(self, *arguments: str) -> Result:
        self.home.use_environment(self.monkeypatch)
        self.monkeypatch.chdir(self.home.project)
        return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def scene(
    private_home: Home,
    redis_server: Server,
    writer: Writer,
    slow_worker: Process,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Scene]:
    writer.start()
    slow_worker.start()
    yield Scene(private_home, redis_server, monkeypatch)
    assert slow_worker.end() == 0
    assert writer.end() == 0


def test_two_sessions_edit_one_file_and_an_old_copy_replaces_nothing(scene: Scene) -> None:
    a, b = scene.folder("a", SOUL=SOUL), scene.folder("b", SOUL=SOUL)
    scene.start("s-a", a)
    scene.settle()
    scene.start("s-b", b)
    scene.settle()
    assert scene.versions() == [("session_sync", SOUL)]
    scene.write("s-a", a, "SOUL.md", f"{SOUL}Ana likes tea.")
    scene.write("s-b", b, "SOUL.md", f"{SOUL}Ana likes coffee, too.")
    scene.settle()
    kept = [
        ("session_sync", SOUL),
        ("self_edit", f"{SOUL}Ana likes tea."),
        ("self_edit", f"{SOUL}Ana likes coffee, too."),
    ]
    assert scene.versions() == kept
    # The session with the older text ends last; its folder was not changed since.
    scene.end("s-b", b)
    scene.end("s-a", a)
    assert scene.versions() == kept
    # The oldest copy in a folder is updated and does not become a new version.
    c = scene.folder("c", SOUL=SOUL)
    scene.start("s-c", c)
    scene.settle()
    newest = f"{SOUL}Ana likes coffee, too."
    until(lambda: (c / "SOUL.md").read_text() == newest, "it was not brought up to date")
    # A change without a tool is found at the end of the session.
    (c / "SOUL.md").write_text(f"{SOUL}Ana likes water.")
    scene.end("s-c", c)
    last = [*kept, ("session_sync", f"{SOUL}Ana likes water.")]
    until(lambda: scene.versions() == last, "the last edit was not found")
    found = json.loads(scene.run("profile", "history", "ana", "SOUL.md", "--json").stdout)
    assert [entry["session_id"] for entry in found["versions"]] == ["s-c", "s-b", "s-a", "s-a"]


def test_fast_edits_are_all_kept_even_if_the_writer_is_late(scene: Scene, writer: Writer) -> None:
    folder = scene.folder("a")
    scene.start("s-a", folder)
    scene.settle()
    assert writer.end() == 0
    texts = [f"{SOUL}{number}" for number in range(5)]
    for text in texts:
        scene.write("s-a", folder, "SOUL.md", text)
    writer.start()
    until(lambda: scene.versions() == [("self_edit", text) for text in texts], "versions are lost")


def test_a_short_file_is_refused(scene: Scene) -> None:
    folder = scene.folder("a", SOUL=SOUL)
    scene.start("s-a", folder)
    scene.settle()
    scene.write("s-a", folder, "SOUL.md", "x" * 50)
    scene.settle()
    scene.end("s-a", folder)
    assert scene.versions() == [("session_sync", SOUL)]
    (line,) = scene.home.rows("SELECT message FROM session_logs WHERE log_level = 'WARNING'")
    assert "50 characters" in line["message"]
    short = folder / "short"
    short.write_text("y" * 50)
    refused = scene.run("profile", "put", "ana", "SOUL.md", str(short))
    assert (refused.exit_code, "50 characters" in refused.stderr) == (1, True)
    short.write_text("z" * (256 * 1024 + 1))  # a worker could not read it back
    refused = scene.run("profile", "put", "ana", "SOUL.md", str(short))
    assert (refused.exit_code, "more than 256 kB" in refused.stderr) == (1, True)


def test_claude_md_is_written_for_the_session_and_restored(scene: Scene) -> None:
    folder = scene.folder("a", CLAUDE="The user's own words.\n")
    ours = scene.folder("texts", ours=f"What Ana knows of the shop. {SOUL}")
    scene.start("s-0", folder)
    scene.end("s-0", folder)
    # the profile does not write the file by default
    assert (folder / "CLAUDE.md").read_text() == "The user's own words.\n"
    scene.run("profile", "add", "ana", "--write-claude-md")
    assert scene.run("profile", "put", "ana", "CLAUDE.md", str(ours / "ours.md")).exit_code == 0
    scene.start("s-1", folder)
    scene.start("s-2", folder)
    scene.settle()
    assert (folder / "CLAUDE.md").read_text().startswith("What Ana knows")
    scene.write("s-1", folder, "CLAUDE.md", f"Ana knows more. {SOUL}")
    scene.settle()
    scene.end("s-1", folder)
    assert (folder / "CLAUDE.md").read_text().startswith("Ana knows more")  # s-2 still runs
    scene.end("s-2", folder)
    assert (folder / "CLAUDE.md").read_text() == "The user's own words.\n"
    assert [source for source, _ in scene.versions("CLAUDE.md")] == ["cli", "self_edit"]


def test_an_edited_claude_md_is_kept(scene: Scene) -> None:
    folder = scene.folder("a", CLAUDE="The user's own words.\n")
    ours = scene.folder("texts", ours=f"What Ana knows of the shop. {SOUL}")
    scene.run("profile", "add", "ana", "--write-claude-md")
    scene.run("profile", "put", "ana", "CLAUDE.md", str(ours / "ours.md"))
    scene.start("s-1", folder)
    scene.settle()
    edited = f"The user edits it. {SOUL}"
    (folder / "CLAUDE.md").write_text(edited)
    scene.end("s-1", folder)
    assert (folder / "CLAUDE.md").read_text() == edited
    assert scene.versions("CLAUDE.md")[-1] == ("session_sync", edited)  # stored as a version


def test_a_tracked_file_or_a_shared_folder_is_not_written(scene: Scene) -> None:
    folder = scene.folder("a", CLAUDE="Tracked.\n", SOUL=SOUL)
    user = ["-c", "user.name=a", "-c", "user.email=a@b.io"]

    def git(*words: str) -> str:
        return str(outcome_of(["git", "-C", str(folder), *user, *words], check=True).stdout)

    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    newer = scene.folder("texts", ours=f"Newer. {SOUL}") / "ours.md"
    scene.run("profile", "add", "ana", "--write-claude-md")
    scene.run("profile", "put", "ana", "CLAUDE.md", str(newer))
    scene.start("s-1", folder)
    scene.settle()
    scene.run("profile", "put", "ana", "SOUL.md", str(newer))
    scene.end("s-1", folder)
    scene.start("s-2", folder)
    scene.settle()
    assert git("status", "--porcelain") == ""
    until(lambda: "git tracks it" in (scene.home.root / "slowhome.log").read_text(), "not reported")
    # The file is not tracked, but a session of another profile is open in the folder.
    shared = scene.folder("b")
    scene.start("s-bo", shared, AGENT_ID="bo")
    scene.settle()
    scene.start("s-3", shared)
    scene.settle()
    assert not (shared / "CLAUDE.md").exists()


def test_the_briefing_has_the_profile_and_the_tasks_of_others_for_a_lead(scene: Scene) -> None:
    folder = scene.folder("a", SOUL=SOUL)
    scene.run("profile", "add", "lea", "--role", "lead")
    scene.run("task", "add", "Split checkout.py", "--id", "t-7")
    scene.start("s-a", folder, TASK_ID="t-7")
    scene.fire(payloads.POST_AGENT_ASYNC, "s-a", folder, TASK_ID="t-7")

    def context_of(profile: str) -> str:
        answer = scene.fire(payloads.SESSION_START, f"s-{profile}", folder, AGENT_ID=profile)
        return str(checked("SessionStart", answer).get("additionalContext", ""))

    until(lambda: SOUL.strip() in context_of("ana"), "the context lacks the profile")
    until(
        lambda: ": t-7\n  > Split checkout.py" in context_of("lea"),
        "the context lacks the others' tasks",
    )
    text = context_of("lea")
    assert "- ana (active" in text
    assert "Explore (" in text
    assert "duplicate their work" in text
    assert "Open sessions" not in context_of("ana")
    listed = json.loads(scene.run("profile", "list", "--json").stdout)["profiles"]
    assert {entry["id"]: entry["status"] for entry in listed} == {"ana": "online", "lea": "online"}
    for session in ("s-a", "s-ana"):
        scene.end(session, folder)
    listed = json.loads(scene.run("profile", "list", "--json").stdout)["profiles"]
    assert {entry["id"]: entry["status"] for entry in listed} == {"ana": "offline", "lea": "online"}


PM2 = """#!/bin/sh
echo "$@" >> {log}
[ "$1" = jlist ] && cat {list}
exit 0
"""


def test_only_tunnels_of_ended_sessions_are_removed(
    private_home: Home,
    redis_server: Server,
    writer: Writer,
    slow_worker: Process,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tools = private_home.root / "tools"
    tools.mkdir()
    log, listed = tools / "log", tools / "list"
    (tools / "pm2").write_text(PM2.format(log=log, list=listed))
    (tools / "pm2").chmod(0o755)
    sessions = {1: "s-1", 2: "s-open", 3: "s-ended", 4: "s-unknown"}
    entries = [
        {"pm_id": id, "name": f"artifact-{id}", "pm2_env": {"HIVEPIPE_SESSION_ID": session}}
        for id, session in sessions.items()
    ]
    entries += [
        {"pm_id": 5, "name": "web", "pm2_env": {"HIVEPIPE_SESSION_ID": "s-1"}},
        {"pm_id": 6, "name": "artifact-6", "pm2_env": {}},
        *("a line", None, {"name": "artifact-7"}, {"pm2_env": {"HIVEPIPE_SESSION_ID": "s-1"}}),
    ]
    listed.write_text(json.dumps(entries))
    slow_worker._env |= {"PATH": f"{tools}:{private_home.env['PATH']}", "HIVEPIPE_PM2": "on"}
    writer.start()
    slow_worker.start()
    scene = Scene(private_home, redis_server, monkeypatch)
    folder = scene.folder("a")
    for session in ("s-1", "s-open", "s-ended"):
        scene.start(session, folder)
    scene.end("s-ended", folder)
    assert "delete 3" in log.read_text()
    scene.end("s-1", folder)
    lines = log.read_text().splitlines()
    assert [line for line in lines if line != "jlist"] == [
        "delete 3",
        "save",
        "delete 1",
        "delete 3",
        "save",
    ]


def test_a_version_is_shown_only_for_its_file(scene: Scene) -> None:
    scene.start("s-a", scene.folder("a", SOUL=SOUL))
    scene.settle()
    for name, text in (("CLAUDE.md", "c" * 120), ("SOUL.md", "s" * 120)):
        path = scene.home.root / name
        path.write_text(text)
        assert scene.run("profile", "put", "bot-2", name, str(path)).exit_code == 0
    (row,) = scene.home.rows("SELECT id FROM identity_versions WHERE name = 'CLAUDE.md'")
    version = ("--version", str(row["id"]))
    for words in (("CLAUDE.md", *version), version):
        assert scene.run("profile", "show", "bot-2", *words).stdout == "| " + "c" * 120 + "\n"
    refused = scene.run("profile", "show", "bot-2", "SOUL.md", *version)
    assert refused.exit_code == 1
    assert f"version {row['id']} is one of CLAUDE.md, not of SOUL.md" in refused.stderr
    assert "no version 9" in scene.run("profile", "show", "bot-2", "--version", "9").stderr


def test_a_profile_in_use_is_not_removed(scene: Scene) -> None:
    folder = scene.folder("a", SOUL=SOUL)
    scene.start("s-a", folder)
    scene.settle()
    assert "no profile" in scene.run("profile", "remove", "bot-9", "--yes").stderr
    (profile,) = [row["id"] for row in scene.home.rows("SELECT id FROM profiles")]
    refused = scene.run("profile", "remove", profile, "--yes")
    assert (refused.exit_code, "s-a works as" in refused.stderr) == (1, True)
    path = scene.home.root / "SOUL.md"
    path.write_text("s" * 120)
    assert scene.run("profile", "put", "bot-2", "SOUL.md", str(path)).exit_code == 0
    assert scene.run("profile", "remove", "bot-2").exit_code == 1  # without --yes
    assert "bot-2 is removed" in scene.run("profile", "remove", "bot-2", "--yes").stdout
    for table, column in (("profiles", "id"), ("identity_versions", "profile_id")):
        assert scene.home.rows(f"SELECT * FROM {table} WHERE {column} = 'bot-2'") == []
    assert scene.home.rows("SELECT * FROM profiles") != []
    assert (folder / "SOUL.md").read_text() == SOUL


def test_copies_of_the_files_of_two_profiles_for_one_event_are_both_kept(tmp_path: Path) -> None:
    names = []
    for profile in ("ana", "ben"):
        (tmp_path / profile).mkdir()
        (tmp_path / profile / "SOUL.md").write_text(profile)
        names.append(keep(str(tmp_path), str(tmp_path / profile / "SOUL.md"), 10**18))
    assert [(tmp_path / "identity" / name).read_text() for name in names] == ["ana", "ben"]
