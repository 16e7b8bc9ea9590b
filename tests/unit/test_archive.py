"""An archive grows with its transcript: new lines, replaced files, restarts, totals and modes."""

import errno
import json
import os
import stat
import time
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hivepipe.archive import reading, totals
from hivepipe.archive.archives import Archives
from hivepipe.archive.index import Entry, Index
from hivepipe.archive.sources import Source
from hivepipe.errors import StoppedError
from hivepipe.jobs.origin import Origin
from hivepipe.operations.archive import archive_transcript
from hivepipe.operations.families.archive import ArchiveTranscript
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.sweep import SweepResult, sweep
from hivepipe.transcripts.description import describe
from hivepipe.transcripts.totals import Totals
from tests.archive_scene import AGENT, PRICES, SESSION, TOKEN, Scene, line, lines, totals_of
from tests.conftest import untagged

SAMPLES = sorted((Path(__file__).parents[1] / "transcripts").rglob("*.jsonl"))


# ---- growing
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_sample_is_kept_line_by_line(scene: Scene, sample: Path) -> None:
    """Several samples end without a newline, one with half a line."""
    data = sample.read_bytes()
    scene.path.write_bytes(data)
    scene.extend()
    whole = data if data.endswith(b"\n") else data + b"\n"
    *_, last = data.rstrip(b"\n").split(b"\n")
    if b'"half a line' in last or not last.endswith(b"}"):
        whole = data[: data.rindex(last)]
    assert scene.archived == whole
    assert scene.meta["message_count"] > 0


def test_the_name_is_the_time_of_the_first_line(scene: Scene) -> None:
    scene.path.write_bytes(b'{"type":"summary","summary":"x"}\n' + lines(2, 61))
    scene.extend()
    name = f"main-session/2026-01/2026-01-10_01-01-00_{SESSION}.jsonl"
    assert (scene.kept / name).is_file()
    assert scene.index()[SESSION] == {
        "kind": "main-session",
        "session_id": SESSION,
        "agent_id": "",
        "agent_type": "",
        "started_at": "2026-01-10T01:01:00Z",
        "path": name,
    }


def test_a_transcript_without_a_time_is_archived_once_it_has_settled(scene: Scene) -> None:
    scene.path.touch()
    assert scene.extend(settled=True) == 0
    scene.path.write_bytes(b'{"type":"summary","summary":"x"}\n')
    os.utime(scene.path, (0, 1_700_000_000))
    assert scene.extend() == 0
    assert scene.files() == {}
    assert scene.extend(settled=True) == 1
    assert scene.only("*.jsonl").name == f"2023-11-14_22-13-20_{SESSION}.jsonl"
    scene.path.write_bytes(scene.path.read_bytes() + lines(1))
    assert scene.extend() == 1
    assert scene.archived == scene.path.read_bytes()


def test_a_folder_name_that_is_not_utf8_is_replaced_in_the_metadata(scene: Scene) -> None:
    path = scene.project.with_name("-home-\udcff") / scene.path.name
    path.parent.mkdir()
    path.write_bytes(lines(1))
    assert scene.extend(path, settled=True) == 1
    meta = json.loads(scene.only("*.meta.json").read_bytes())
    assert meta["source"]["path"].endswith(f"-home-\ufffd/{path.name}")


# ---- the end of a file that grows
def test_every_entry_of_the_index_has_a_file(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    change = Index.change
    paths: list[str] = []

    def checked(index: Index, changes: dict[str, Entry | None]) -> None:
        change(index, changes)
        paths.extend(entry["path"] for entry in changes.values() if entry)
        assert all((scene.kept / path).exists() for path in paths)

    monkeypatch.setattr(Index, "change", checked)
    scene.path.write_bytes(lines(2))
    scene.extend()
    assert paths


def test_half_a_line_is_archived_once_it_is_complete(scene: Scene) -> None:
    whole = lines(2)
    for cut in range(len(lines(1)), len(whole) - 1, 7):
        scene.path.write_bytes(whole[:cut])
        scene.extend()
        assert scene.archived == lines(1)
    for grown in (whole[:-1], whole, lines(4)):  # a whole object does not wait for its newline
        scene.path.write_bytes(grown)
        scene.extend()
        assert scene.archived == (whole if len(grown) <= len(whole) else grown)


@pytest.mark.parametrize("ending", [b"\n\n", b"   \n", b"\r\n", b"not json\n", b'"a"\n', b"\0\n"])
def test_lines_that_are_no_objects_are_kept_as_they_are(scene: Scene, ending: bytes) -> None:
    scene.path.write_bytes(lines(1) + ending + lines(1, 1))
    scene.extend()
    assert scene.archived == scene.path.read_bytes()


def test_a_line_that_is_too_long_is_replaced_by_a_note(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LONGEST_LINE_BYTES", 10_000)
    monkeypatch.setattr(reading, "CHUNK_BYTES", 1000)
    long = line(1, "x" * 20_000)
    scene.path.write_bytes(line(0) + long + line(2))
    scene.extend()
    first, note, last = scene.archived.splitlines(keepends=True)
    assert (first, last) == (line(0), line(2))
    fields = json.loads(note)
    assert (fields["type"], fields["bytes"]) == ("hivepipe-omitted", len(long) - 1)


# ---- secrets
def test_a_secret_is_removed_and_the_rest_is_kept(scene: Scene) -> None:
    odd = b'{"timestamp":"2026-01-10T00:00:00Z","n":1e400,"a":"\\ud83d \\/ \\u00e9","a":1}\n'
    scene.path.write_bytes(odd + line(0, f"the key is {TOKEN}.") + line(1))
    scene.extend()
    first, second, third = scene.archived.splitlines(keepends=True)
    assert (first, third) == (odd, line(1))
    assert TOKEN.encode() not in second
    assert untagged(second.decode()) == line(0, "the key is ***REDACTED***.").decode()
    assert TOKEN not in json.dumps(scene.meta)
    assert TOKEN.encode() not in b"".join(scene.files().values())


# ---- replaced and rotated transcripts
def replace_transcript(scene: Scene, data: bytes) -> int:
    """Replace the transcript with another file and extend the archive."""
    other = scene.path.with_suffix(".new")
    other.write_bytes(data)
    other.rename(scene.path)
    return scene.extend()


def test_a_shrunk_transcript_removes_nothing_from_the_archive(scene: Scene) -> None:
    scene.path.write_bytes(lines(10))
    scene.extend()
    scene.path.write_bytes(b"")
    assert scene.extend() == 0
    assert scene.meta["source"]["bytes"] == 0
    scene.path.write_bytes(lines(4))
    assert scene.extend() == 0
    scene.path.write_bytes(lines(4) + lines(2, 20))
    assert scene.extend() == 2
    assert scene.archived == lines(10) + lines(2, 20)
    assert scene.meta["message_count"] == 12


def test_a_replaced_transcript_adds_what_is_new_in_it(scene: Scene) -> None:
    scene.path.write_bytes(lines(10))
    scene.extend()
    before = scene.only("*.jsonl")
    assert replace_transcript(scene, lines(5, 5) + lines(5, 20)) == 5
    assert scene.archived == lines(10) + lines(5, 20)
    assert scene.only("*.jsonl") == before
    with scene.path.open("ab") as transcript:
        transcript.write(lines(1, 30))
    assert scene.extend() == 1
    assert scene.archived == lines(10) + lines(5, 20) + lines(1, 30)


@pytest.mark.parametrize(("start", "at"), [(0, 0), (0, 3), (0, 5), (3, 0), (3, 3)])
def test_a_transcript_that_is_rewritten_while_it_is_read_loses_no_line(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, start: int, at: int
) -> None:
    monkeypatch.setattr(reading, "CHUNK_BYTES", 700)
    scene.path.write_bytes(lines(start))
    scene.extend()
    scene.path.write_bytes(lines(10))
    calls = count()

    def rewrite_once() -> bool:
        if next(calls) == at:
            scene.path.write_bytes(lines(20, 100))
        return False

    with scene.source() as source:
        scene.archives.extend(source, scene.callbacks(rewrite_once))
    assert next(calls) > at
    scene.extend()
    archived = set(scene.archived.splitlines())
    new = set(lines(20, 100).splitlines())
    assert new <= archived <= new | set(lines(10).splitlines())


def test_a_transcript_that_is_rewritten_before_it_is_read_loses_no_line(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.path.write_bytes(lines(3))
    scene.extend()
    scene.path.write_bytes(lines(10))
    with monkeypatch.context() as patch:
        patch.setattr(scene.archives, "_claim", lambda *_: scene.path.write_bytes(lines(20, 100)))
        scene.extend()
    scene.extend()
    assert scene.archived == lines(3) + lines(20, 100)


def test_lines_that_repeat_are_counted_not_merged(scene: Scene) -> None:
    mode = b'{"type":"mode","mode":"plan"}\n'
    scene.path.write_bytes(line(0) + mode + line(1) + mode)
    scene.extend()
    assert replace_transcript(scene, mode * 3 + line(9)) == 2
    kept = Counter(scene.archived.splitlines(keepends=True))
    assert kept == Counter({line(0): 1, line(1): 1, line(9): 1, mode: 3})


# ---- leftovers of a killed process
def test_bytes_after_the_checkpoint_are_cut_off(scene: Scene) -> None:
    scene.path.write_bytes(lines(3))
    scene.extend()
    with scene.only("*.jsonl").open("ab") as archive:
        archive.write(line(3) + line(4)[:50])
    scene.path.write_bytes(lines(6))
    scene.fresh()
    assert scene.extend() == 3
    assert scene.archived == lines(6)
    assert len(scene.index()) == 1, "leftovers are no edit"


@pytest.mark.parametrize("left", [0, 100, len(lines(1)), len(lines(2)) - 1, len(lines(2)) + 9])
def test_an_archive_that_lost_its_metadata_is_continued(scene: Scene, left: int) -> None:
    scene.path.write_bytes(lines(4))
    scene.extend()
    expected = scene.files()
    scene.only("*.meta.json").unlink()
    scene.only(".*.reach").unlink()
    scene.only("*.jsonl").write_bytes(lines(4)[:left])
    scene.fresh()
    scene.extend()
    assert scene.files() == expected


@pytest.mark.parametrize("files", ["*.meta.json", ".*.reach", ".*.[tr][ae][al]*"])
def test_damaged_or_missing_metadata_files_are_rebuilt(scene: Scene, files: str) -> None:
    scene.path.write_bytes(lines(4))
    scene.extend()
    expected = scene.files()
    for damage in (b"", b"{", b"[1]", b'{"archive":{}}', b"1 2 3", None):
        found = list(scene.kept.rglob(files))
        assert found
        for path in found:
            path.unlink() if damage is None else path.write_bytes(damage)
        scene.fresh()
        scene.extend(settled=True)
        assert scene.files() == expected, damage


def test_a_truncated_archive_is_kept_and_a_new_one_is_written(scene: Scene) -> None:
    scene.path.write_bytes(lines(9))
    scene.extend()
    cut = scene.only("*.jsonl")
    os.truncate(cut, 700)
    scene.path.write_bytes(lines(10))
    scene.fresh()
    scene.extend()
    assert cut.read_bytes() == lines(9)[:700]
    (entry,) = scene.index().values()
    assert (scene.kept / entry["path"]).read_bytes() == lines(10)


# ---- interrupted
def test_a_stopped_run_keeps_its_lines_and_is_continued(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CHUNK_BYTES", 2000)
    scene.path.write_bytes(lines(40))
    stopped = 0
    while True:
        scene.fresh()
        before = len(scene.archived) if stopped else 0
        try:
            with scene.source() as source:
                scene.archives.extend(source, scene.callbacks(lambda: True))
        except StoppedError:
            stopped += 1
            assert len(scene.archived) > before
        else:
            break
    assert stopped > 5
    assert scene.archived == lines(40)
    assert len(scene.reported()) == 40
    assert scene.meta["message_count"] == 40


# ---- totals
def test_each_turn_appends_its_lines_and_totals_survive_restarts(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "GROWTH_PER_SIZE", 0.8)
    caught_up = set()  # whether a restart met totals of fewer lines
    for turn in range(20):
        if turn % 4 == 3:
            saved = json.loads(scene.only(".*.tally").read_bytes().split(b"\n")[0])
            caught_up.add(saved["bytes"] < len(scene.archived))
            scene.fresh()
        with scene.path.open("ab") as transcript:
            transcript.write(lines(3, turn * 3))
        assert scene.extend() == 3
        assert scene.extend(settled=turn % 2 == 0) == 0
    assert scene.archived == scene.path.read_bytes() == lines(60)
    assert True in caught_up
    whole = totals_of(scene.archived.splitlines())
    others = ("archive", "source", "kind", "meta_crc32")
    fields = {name: value for name, value in scene.meta.items() if name not in others}
    assert fields == describe(whole, PRICES)
    assert (fields["message_count"], fields["tokens"]["output"]) == (60, sum(range(1, 61)))
    assert sorted(scene.reported()) == sorted(f"msg-{n}" for n in range(60))


def test_damaged_totals_are_counted_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(totals, "GROWTH_PER_SIZE", 0.2)
    scene.path.write_bytes(lines(10))
    scene.extend()
    for number, damage in enumerate((b"", b"{", b'{"bytes":5,"crc32":"0"}\n[1,{}]'), 11):
        scene.only(".*.tally").write_bytes(damage)
        scene.fresh()
        scene.path.write_bytes(lines(number))
        scene.extend()
        assert scene.meta["message_count"] == number


def test_small_turns_are_described_when_they_have_settled(scene: Scene) -> None:
    def described_lines() -> int:
        meta = json.loads(scene.only("*.meta.json").read_bytes())
        assert (meta["lines"] == 5) == (meta["archive"]["bytes"] == len(lines(5)))
        return int(meta["lines"])

    scene.path.write_bytes(lines(4))
    scene.extend()
    assert described_lines() == 4
    scene.path.write_bytes(lines(5))
    scene.extend()
    assert described_lines() == 4
    scene.extend(settled=True)
    assert described_lines() == 5
    before = {path: path.stat().st_mtime_ns for path in scene.kept.rglob("*")}
    scene.extend(settled=True)
    assert {path: path.stat().st_mtime_ns for path in scene.kept.rglob("*")} == before
    scene.path.write_bytes(lines(5) + line(5, "x" * 60_000))
    scene.extend()
    assert described_lines() == 6


# ---- subagents
def test_a_subagent_has_an_archive_of_its_own(scene: Scene) -> None:
    scene.path.write_bytes(lines(2))
    path = scene.agent_path()
    path.write_bytes(lines(3, 70))
    scene.extend()
    scene.extend(path, agent_type="my-plugin:reviewer")
    kept = scene.only(f"*_{AGENT}.jsonl")
    assert kept.relative_to(scene.kept).parts[:3] == ("subagent", "my-plugin%3Areviewer", "2026-01")
    assert kept.read_bytes() == lines(3, 70)
    meta = json.loads(kept.with_suffix("").with_suffix(".meta.json").read_bytes())
    named = {"task_id": AGENT, "agent_type": "my-plugin:reviewer", "parent_session_id": SESSION}
    assert list(meta)[:4] == ["kind", *named]
    assert named.items() <= meta.items()
    assert (meta["message_count"], meta["duration_seconds"]) == (3, 120)
    assert set(scene.index()) == {SESSION, f"{SESSION}/{AGENT}"}


def test_a_session_counts_the_tokens_of_its_subagents(scene: Scene) -> None:
    scene.path.write_bytes(lines(2))
    scene.extend()
    assert scene.meta["tokens"]["output"] == 1 + 2
    path = scene.agent_path()
    path.write_bytes(lines(1, 70))
    scene.extend(path, agent_type="Explore")
    assert scene.meta["tokens"]["output"] == 1 + 2 + 71
    assert scene.meta["message_count"] == 2
    scene.fresh()
    scene.path.write_bytes(lines(3))
    scene.extend()
    assert scene.meta["tokens"]["output"] == 1 + 2 + 3 + 71


JOB = Origin(id="1", operation="archive_transcript", event_time_ns=1, session=SESSION)


def context_of(scene: Scene) -> JobContext:
    return JobContext(str(scene.home), "", lambda _parent, _jobs: None)


def end_session(scene: Scene) -> None:
    args = ArchiveTranscript(path=str(scene.path), ends=True, settle_s=5)
    archive_transcript(context_of(scene), JOB, args)


def sweep_all(scene: Scene) -> SweepResult:
    return sweep(context_of(scene), JOB, [str(scene.root / ".claude")])


def fail(*_any: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_the_end_of_a_session_extends_only_the_subagents_that_have_grown(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    extend, extended = Archives.extend, []

    def counted(archives: Archives, source: Source, *more: Any, **settled: bool) -> int:
        extended.append(source.agent)
        return extend(archives, source, *more, **settled)

    monkeypatch.setattr(Archives, "extend", counted)
    scene.path.write_bytes(lines(2))
    for agent in ("a0", "b1"):
        scene.agent_path(agent).write_bytes(lines(1))
    end_session(scene)
    assert extended == ["", "a0", "b1"]
    scene.agent_path("b1").write_bytes(lines(2))
    end_session(scene)
    assert extended[3:] == ["", "b1"]


@pytest.mark.parametrize("again", [end_session, sweep_all])
def test_a_session_that_was_not_described_after_its_subagent_is_described_later(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, again: Callable[[Scene], object]
) -> None:
    scene.path.write_bytes(lines(2))
    scene.agent_path().write_bytes(lines(1, 70))
    os.utime(scene.agent_path(), (time.time() - 7 * 86_400,) * 2)
    with monkeypatch.context() as full:
        full.setattr(Archives, "describe_again", fail)
        with pytest.raises(OSError, match="No space"):
            end_session(scene)
        assert scene.meta["tokens"]["output"] == 1 + 2
        assert sweep_all(scene).failed == {
            str(scene.only(f"*_{SESSION}.jsonl")): "No space left on device"
        }
    again(scene)
    assert scene.meta["tokens"]["output"] == 1 + 2 + 71


@pytest.mark.parametrize("archive", [end_session, sweep_all])
def test_a_session_is_described_once_after_all_of_its_subagents(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, archive: Callable[[Scene], object]
) -> None:
    (scene.home / "followed-folders").write_text("/home/ana/shop\n")
    scene.path.write_bytes(lines(2))
    scene.extend()
    for agent in ("a0", "b1", "c2"):
        scene.agent_path(agent).write_bytes(lines(1, 70))
    described, describe_again = [], Archives.describe_again

    def counted(archives: Archives, key: str, callbacks: Any) -> None:
        described.append(key)
        describe_again(archives, key, callbacks)

    monkeypatch.setattr(Archives, "describe_again", counted)
    archive(scene)
    assert described == [SESSION]


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_session_is_described_again_if_a_subagent_grows_meanwhile(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, is_settled: bool
) -> None:
    """A sweep that extends the subagent may be killed before it describes the session."""
    scene.path.write_bytes(lines(2))
    scene.extend()
    scene.agent_path().write_bytes(lines(1, 70))
    subagents, sweep_once = Archives._subagents, [True]

    def overtaken(archives: Archives, session: str) -> list[Totals]:
        before = subagents(archives, session)
        if session == SESSION and sweep_once.pop():
            monkeypatch.setattr(Archives, "_subagents", subagents)
            with scene.source(scene.agent_path()) as source:
                archives.extend(source, scene.callbacks(), describes_session=False)
        return before

    monkeypatch.setattr(Archives, "_subagents", overtaken)
    if is_settled:
        scene.path.write_bytes(lines(3))
        scene.extend(settled=True)
        assert scene.meta["tokens"]["output"] == 1 + 2 + 3 + 71
    else:
        scene.archives.describe_again(SESSION, scene.callbacks())
        assert scene.meta["tokens"]["output"] == 1 + 2 + 71


def test_a_sweep_describes_no_session_that_is_up_to_date(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.path.write_bytes(lines(2))
    scene.agent_path().write_bytes(lines(1, 70))
    end_session(scene)
    scene.age_files(days=1)
    assert sweep_all(scene).failed == {}
    monkeypatch.setattr(Archives, "describe_again", fail)
    assert sweep_all(scene).failed == {}


def test_the_agent_type_is_read_beside_the_transcript_if_no_event_has_it(scene: Scene) -> None:
    """A pipe in its place delays nothing."""
    for agent, named in ((AGENT, "Explore"), ("b0", "unknown"), ("c0", "unknown")):
        path = scene.agent_path(agent)
        path.write_bytes(lines(1))
        beside = path.with_suffix(".meta.json")
        if agent == AGENT:
            beside.write_text('{"agentType": "Explore"}')
        elif agent == "b0":
            os.mkfifo(beside)  # nobody writes into it
        assert scene.extend(path) == 1
        assert scene.index()[f"{SESSION}/{agent}"]["agent_type"] == named


def test_agents_of_one_id_in_two_sessions_do_not_mix(scene: Scene) -> None:
    for session in (SESSION, "another"):
        path = scene.agent_path(session=session)
        path.write_bytes(line(0, session))
        scene.extend(path, agent_type="Explore")
    kept = {path.read_bytes() for path in scene.kept.rglob("*.jsonl")}
    assert kept == {line(0, SESSION), line(0, "another")}
    scene.extend(scene.agent_path(), agent_type="Explore")
    assert len(scene.index()) == 2


# ---- permissions
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_only_the_user_can_read_the_archive(scene: Scene, umask: int) -> None:
    scene.path.write_bytes(lines(3))
    before = os.umask(umask)
    try:
        scene.extend()
    finally:
        os.umask(before)
    for path in [scene.kept, *scene.kept.rglob("*")]:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_lines_are_read_from_an_offset_up_to_a_checkpoint(scene: Scene) -> None:
    """A line that goes beyond the checkpoint is being written."""
    scene.path.write_bytes(lines(4))
    scene.extend()
    first, second, third, _ = scene.archived.splitlines(keepends=True)
    start = len(first)
    end = start + len(second) + len(third)
    entry = scene.archives.index.entries()[SESSION]
    with scene.archives.opened(entry) as kept:
        expected = [(start, second), (start + len(second), third)]
        assert [*kept.lines_until(end + 1, start)] == expected
