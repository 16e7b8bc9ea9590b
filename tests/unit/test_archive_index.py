"""The archive index: what another process changes is seen, and a new archive costs the same."""

import os
import random
from pathlib import Path

import orjson
import pytest

from hivepipe.archive import index as module
from hivepipe.archive.index import Entry, Index, key_of
from hivepipe.errors import StoreError
from hivepipe.files.manifest import Manifest, OwnFile


def entry(number: int, agent: str = "", month: str = "2026-11") -> Entry:
    session = f"session-{number}"
    kind = "subagent" if agent else "main-session"
    folder = f"subagent/Explore/{month}" if agent else f"main-session/{month}"
    return {
        "kind": kind,
        "session_id": session,
        "agent_id": agent,
        "agent_type": "Explore" if agent else "",
        "started_at": f"{month}-21T01:00:00",
        "path": f"{folder}/20261121-010000_{agent or session}.jsonl",
    }


class Process:
    """One of several processes that use the same archives."""

    def __init__(self, home: Path) -> None:
        self.manifest = Manifest(str(home))
        self.index = Index(str(home), self.manifest)

    def add(self, new: Entry) -> None:
        self.manifest.claim(new["path"])
        self.index.change({key_of(new): new})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for archives; the index is large at once, so that the journal is used."""
    monkeypatch.setattr(module, "SMALL_BYTES", 1)
    return tmp_path


@pytest.mark.parametrize("seed", range(6))
def test_processes_agree_after_changes_in_any_order(
    folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    processes = [Process(folder) for _ in range(3)]
    for _ in range(60):
        each = chance.choice(processes)
        one = entry(chance.randrange(4), chance.choice(["", "a1", "a2"]))
        match chance.randrange(7):
            case 0:
                each.manifest.disown(one["path"])
            case 1:
                each.index.change({key_of(one): None})
            case 2:  # in the index, but perhaps not in the manifest
                each.index.change({key_of(one): one})
            case 3:
                monkeypatch.setattr(module, "LARGE_EVERY_SECS", -1.0)  # the index is written
                each.index.change({})
                monkeypatch.setattr(module, "LARGE_EVERY_SECS", 600.0)
            case _:
                each.add(one)
        reader, fresh = chance.choice(processes), Process(folder)
        assert reader.index.entries() == fresh.index.entries()
        for number in range(4):
            session = f"session-{number}"
            agents = {k: e for k, e in fresh.index.entries().items() if k.startswith(f"{session}/")}
            assert reader.index.of_agents(session) == agents


def test_a_journal_that_grew_again_after_it_was_emptied_is_read_from_its_begin(
    folder: Path,
) -> None:
    one = Process(folder)
    for number in range(3):
        one.add(entry(number))
    entries = one.index.entries()
    assert len(entries) == 3
    journal = folder / module.JOURNAL
    other = {key_of(each): each for each in map(entry, (0, 1, 7, 8))}
    for each in other.values():
        one.manifest.claim(each["path"])
    lines = b"".join(b"\n" + orjson.dumps([key, each]) + b"\n" for key, each in other.items())
    journal.write_bytes(lines)  # longer than what was read
    assert one.index.entries().keys() >= other.keys()


def test_a_partial_line_is_read_when_it_is_complete(folder: Path) -> None:
    one, other = Process(folder), Process(folder)
    one.add(entry(0))
    one.add(entry(1))
    assert len(other.index.entries()) == 2
    line = orjson.dumps([key_of(entry(2)), entry(2)]) + b"\n"
    one.manifest.claim(entry(2)["path"])
    journal = os.open(folder / module.JOURNAL, os.O_WRONLY | os.O_APPEND)
    os.write(journal, line[:40])
    assert len(other.index.entries()) == 2
    os.write(journal, line[40:])
    os.close(journal)
    assert len(other.index.entries()) == 3


def test_a_change_is_read_again_after_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Process(folder), Process(folder)
    other.add(entry(0))
    other.add(entry(1))
    assert len(one.index.entries()) == 2
    other.add(entry(2))
    with monkeypatch.context() as busy:
        busy.setattr(one.manifest, "_rows", _fails)
        with pytest.raises(StoreError):
            one.index.entries()
    assert one.index.entries().keys() == other.index.entries().keys()


def test_subagents_are_complete_while_another_thread_reads_the_index(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = Process(folder), Process(folder)
    other.add(entry(0, "a1"))
    other.add(entry(0, "a2"))
    seen = list[int]()

    class Looking(dict[str, str]):
        """An entry; while it is read, another thread asks for the subagents."""

        def __getitem__(self, name: str) -> str:
            seen.append(len(one.index._agents["session-0"]))
            return super().__getitem__(name)

    looking = {key: Looking(each) for key, each in one.index.entries().items()}
    monkeypatch.setattr(one.index, "_entries", looking)
    other.add(entry(1))
    one.index.entries()
    assert set(seen) == {2}


def test_a_claim_that_another_process_made_too_hides_none_of_its_other_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore adds many files in one transaction."""
    one, other = Manifest(str(folder)), Manifest(str(folder))
    one.claim("a")
    write = one._write

    def later(sql: str, *values: object) -> int:
        other.take_over(dict.fromkeys(("b", "c"), OwnFile(1.0, "", "")))
        return write(sql, *values)

    monkeypatch.setattr(one, "_write", later)
    one.claim("b")
    assert one.made() == other.made() == {"b", "c"}


def _fails(*_: object) -> None:
    raise StoreError("busy")


def test_a_new_archive_reads_no_older_entry_and_no_older_path(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Process(folder)
    for number in range(50):
        one.add(entry(number))
    assert len(one.index.entries()) == 50
    parsed, paths = list[bytes](), list[str]()
    load, rows = orjson.loads, one.manifest._rows
    monkeypatch.setattr(orjson, "loads", lambda text: parsed.append(text) or load(text))
    monkeypatch.setattr(
        one.manifest, "_rows", lambda sql, *rest: paths.append(sql) or rows(sql, *rest)
    )
    one.add(entry(50))
    assert len(one.index.entries()) == 51
    assert len(parsed) <= 3
    assert not any(sql == "SELECT path FROM files" for sql in paths)
