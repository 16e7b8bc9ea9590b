"""Which files are transcripts, which session they belong to, and where archives are written."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hivepipe.archive import scope
from hivepipe.archive.naming import ArchiveName, folder_name, is_archive_path
from hivepipe.archive.sources import open_source, transcripts_in
from hivepipe.errors import ArchiveError, RefusedTranscriptError
from tests.archive_scene import AGENT, SESSION, Scene, line, lines


def test_a_tilde_another_and_a_linked_claude_folder_are_accepted(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.home.variable", lambda name: str(scene.root))
    scene.path.write_bytes(lines(1))
    assert scene.extend(Path(f"~/.claude/projects/-home-ana-shop/{SESSION}.jsonl")) == 1
    other = scene.root / "work" / "projects" / "-x"
    other.mkdir(parents=True)
    path = other / "abc123.jsonl"
    path.write_bytes(lines(1))
    with pytest.raises(RefusedTranscriptError, match="in a folder of Claude Code's"):
        scene.extend(path)
    assert scene.extend(path, claude_folder=str(scene.root / "work")) == 1
    (scene.root / ".claude").rename(scene.root / "elsewhere")
    (scene.root / ".claude").symlink_to(scene.root / "elsewhere")
    scene.path.write_bytes(lines(2))
    assert scene.extend() == 1


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "{root}/secret.jsonl",
        "{root}/.claude/history.jsonl",
        "{root}/.claude/projects/../../secret.jsonl",
        "{root}/.claude/projects-of-mine/x.jsonl",
        "{root}/.claude/projects/-home-ana-shop/notes.txt",
        "{root}/.claude/projects/-home-ana-shop/a b.jsonl",
        "{root}/.claude/projects/-home-ana-shop/....jsonl",
        "{root}/.claude/projects/-home-ana-shop/deep/er/abc.jsonl",
    ],
)
def test_other_files_are_refused(scene: Scene, path: str) -> None:
    for name in ("secret.jsonl", ".claude/history.jsonl"):
        (scene.root / name).write_bytes(lines(1))
    for folder in ("-home-ana-shop/deep/er", "../projects-of-mine"):
        (scene.project.parent / folder).mkdir(parents=True)
    real = Path(path.format(root=scene.root))
    if not real.exists():
        real.write_bytes(lines(1))
    with pytest.raises(RefusedTranscriptError) as refused:
        scene.extend(real)
    assert str(scene.root) not in str(refused.value)
    assert not scene.kept.exists()


@pytest.mark.parametrize("target", ["/etc/passwd", "{root}/secret.jsonl", "{root}"])
def test_a_link_out_of_claudes_folders_is_refused(scene: Scene, target: str) -> None:
    (scene.root / "secret.jsonl").write_bytes(lines(1))
    scene.path.symlink_to(target.format(root=scene.root))
    (scene.project.parent / "-linked").symlink_to(scene.root)
    for path in (scene.path, scene.project.parent / "-linked" / "secret.jsonl"):
        with pytest.raises(RefusedTranscriptError):
            pytest.fail(f"archived {path}: {scene.extend(path)}")
    assert not scene.kept.exists()


def test_a_link_within_claudes_folders_is_followed(scene: Scene) -> None:
    real = scene.project / "abc.jsonl"
    real.write_bytes(lines(1))
    scene.path.symlink_to(real)
    assert scene.extend() == 1
    assert set(scene.index()) == {"abc"}


def test_a_pipe_or_nothing_instead_of_a_transcript_is_refused(scene: Scene) -> None:
    with pytest.raises(FileNotFoundError):
        scene.extend()
    os.mkfifo(scene.path)
    with pytest.raises(RefusedTranscriptError, match="not a file"):
        scene.extend()
    assert not scene.kept.exists()


def test_the_session_of_an_old_subagent_is_read_from_its_lines(scene: Scene) -> None:
    for path in (scene.project / "agent-0a1b.jsonl", scene.root / ".claude/tasks/task-xyz.jsonl"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lines(1))
        scene.extend(path, agent_type="architect")
    assert set(scene.index()) == {f"{SESSION}/0a1b", f"{SESSION}/task-xyz"}
    without_session = scene.project / "agent-2c3d.jsonl"
    without_session.write_bytes(b'{"timestamp":"2026-01-10T00:00:00Z"}\n')
    with pytest.raises(RefusedTranscriptError, match="no session"):
        scene.extend(without_session)
    scene.extend(without_session, session="abc")
    assert "abc/2c3d" in scene.index()


@pytest.mark.parametrize(
    ("agent_type", "name"),
    [
        ("Explore", "Explore"),
        ("my-plugin:reviewer", "my-plugin%3Areviewer"),
        ("../../../../evil", "..%2F..%2F..%2F..%2Fevil"),
        ("..", "%2E%2E"),
        (".", "%2E"),
        ("a/b\\c\0d", "a%2Fb%5Cc%00d"),
        ("schöner Typ", "sch%C3%B6ner%20Typ"),
        ("", "%"),
    ],
)
def test_a_type_becomes_one_folder(agent_type: str, name: str) -> None:
    assert folder_name(agent_type) == name
    made = ArchiveName.made(SESSION, AGENT, agent_type, "2026-01-10T01:02:03.000Z")
    assert is_archive_path(made.path)
    assert len(made.path.split("/")) == 4


def test_a_long_type_is_cut_and_stays_distinct() -> None:
    first, second = folder_name("ü" * 150), folder_name("ü" * 149 + "x")
    assert first != second
    assert len(first) == len(second) == 200


@pytest.mark.parametrize(
    "path",
    ["../2026-01/x.jsonl", "main-session/../x.jsonl", "subagent/../2026-01/x.jsonl",
     "main-session/2026-01/../../x.jsonl", "/etc/2026-01/x.jsonl", "main-session/2026-01/x.txt",
     "subagent/./2026-01/x.jsonl", "main-session/2026-01/x.jsonl\n"],
)  # fmt: skip
def test_a_path_of_another_form_is_no_archive_path(path: str) -> None:
    assert not is_archive_path(path)


@pytest.mark.parametrize("linked", ["main-session", "main-session/2026-01", ".archive-locks", "."])
def test_a_linked_folder_of_the_archive_is_refused(scene: Scene, linked: str) -> None:
    outside = scene.root / "outside"
    outside.mkdir()
    scene.path.write_bytes(lines(1))
    link = scene.kept if linked == "." else scene.kept / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    with pytest.raises(OSError, match="link"):
        scene.extend()
    assert list(outside.rglob("*")) == []


@pytest.mark.parametrize("name", ["{stem}.jsonl", "{stem}.meta.json"])
def test_a_linked_file_of_the_archive_is_not_written_through(scene: Scene, name: str) -> None:
    victim = scene.root / "victim"
    victim.write_text("mine")
    scene.path.write_bytes(lines(1))
    folder = scene.kept / "main-session" / "2026-01"
    folder.mkdir(parents=True)
    link = folder / name.format(stem=f"2026-01-10_00-00-00_{SESSION}")
    link.symlink_to(victim)
    assert scene.extend() == 1
    (entry,) = scene.index().values()
    assert (scene.kept / entry["path"]).read_bytes() == lines(1)
    assert link.is_symlink()
    assert victim.read_text() == "mine"


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that writes the registration record of a folder."""
    from hivepipe.home import record_path  # noqa: PLC0415

    monkeypatch.setattr("hivepipe.home.state_folder", lambda: str(tmp_path / "state"))

    def write(folder: Path, **fields: str) -> None:
        path = Path(record_path(os.path.realpath(folder)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{key}={value}\n" for key, value in fields.items()))

    return write


def test_a_home_takes_the_transcripts_of_its_project(
    tmp_path: Path, record: Callable[..., None]
) -> None:
    ours, theirs = tmp_path / "shop", tmp_path / "bank"
    inner = ours / "vendored"
    for folder in (ours, theirs, inner):
        (folder / "src").mkdir(parents=True)
        record(folder, home=f"{folder}/.hive-mind", state="on")
    home = f"{ours}/.hive-mind"
    for taken in (ours, ours / "src", ours / "src" / "deleted" / "since"):
        assert scope.may_take(home, str(taken), [])
    for other in (theirs, inner, tmp_path, f"{ours}-2"):
        assert not scope.may_take(home, str(other), [])
    assert not scope.may_take(home, str(theirs), [str(theirs)])
    record(ours, home=home, state="off")
    assert not scope.may_take(home, str(ours), [])
    assert not scope.may_take(home, str(ours), [str(ours)])


def test_a_followed_folder_is_taken_unless_it_has_a_home(
    tmp_path: Path, record: Callable[..., None]
) -> None:
    home, loose, owned = tmp_path / "default", tmp_path / "loose", tmp_path / "owned"
    for folder in (loose / "src", owned):
        folder.mkdir(parents=True)
    record(owned, home=f"{owned}/.hive-mind", state="on")
    assert scope.followed_folders(str(home)) == []
    assert not scope.may_take(str(home), str(loose), [])
    scope.follow(str(home), str(loose))
    scope.follow(str(home), str(loose / "src" / ".."))
    followed = scope.followed_folders(str(home))
    assert followed == [str(loose)]
    assert scope.may_take(str(home), str(loose / "src"), followed)
    assert not scope.may_take(str(home), f"{loose}-2", followed)
    with pytest.raises(ArchiveError, match="home of its own"):
        scope.follow(str(home), str(owned))
    scope.follow(str(home), str(tmp_path / "deleted"))
    assert scope.may_take(str(home), str(tmp_path / "deleted" / "src"), [f"{tmp_path}/deleted"])
    scope.unfollow(str(home), str(tmp_path / "deleted"))
    with pytest.raises(ArchiveError, match="not a folder"):
        scope.follow(str(home), __file__)
    odd = tmp_path / "two\nlines"
    odd.mkdir()
    with pytest.raises(ArchiveError, match="has characters that the list"):
        scope.follow(str(home), str(odd))
    scope.unfollow(str(home), str(loose))
    assert scope.followed_folders(str(home)) == []
    with pytest.raises(ArchiveError, match="not followed"):
        scope.unfollow(str(home), str(loose))
    scope.follow(str(home), "/")
    assert scope.followed_folders(str(home)) == ["/"]
    assert scope.may_take(str(home), str(tmp_path), ["/"])
    assert not scope.may_take(str(home), str(owned), ["/"])


def test_transcripts_are_listed_with_each_sessions_own_first(scene: Scene) -> None:
    scene.path.write_bytes(line(0))
    agent = scene.agent_path()
    deep = scene.agent_path().parent / "workflows" / "run1" / "agent-c0.jsonl"
    deep.parent.mkdir(parents=True)
    for path in (agent, deep):
        path.write_bytes(line(0))
    (scene.project / "sessions-index.json").write_text("{}")
    (scene.project.parent / "-linked").symlink_to(scene.project)
    (scene.project / SESSION / "tool-results").mkdir()
    (scene.project / SESSION / "tool-results" / "x.jsonl").write_text("{}")
    found = list(transcripts_in(str(scene.root / ".claude")))
    assert found == [str(scene.path), str(agent), str(deep)]


def test_the_session_of_a_codex_transcript_is_in_its_file_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.home.variable", lambda name: str(tmp_path))
    id = "01a205ab-d103-7783-8da7-0b4ab90fa79e"
    for home, named in ((tmp_path / ".codex", ""), (tmp_path / "mine", str(tmp_path / "mine"))):
        path = home / "sessions/2026/11/22" / f"rollout-2026-11-22T23-51-16-{id}.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("{}\n")
        with open_source(str(path), named) as source:
            assert (source.session, source.agent) == (id, "")
    outside = tmp_path / f"rollout-2026-11-22T23-51-16-{id}.jsonl"
    outside.write_text("{}\n")
    with pytest.raises(RefusedTranscriptError), open_source(str(outside)):
        pass
