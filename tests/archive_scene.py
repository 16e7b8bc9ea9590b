"""Helpers for tests of the archive: a user's Claude folder, transcripts and an archive."""

import json
import os
import resource
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hivepipe.archive import append, reading, totals
from hivepipe.archive.append import Chunk
from hivepipe.archive.archives import ArchiveCallbacks, Archives
from hivepipe.archive.sources import Source, open_source
from hivepipe.costs.price_table import built_in
from hivepipe.files.manifest import Manifest
from hivepipe.redact.redactor import Redactor
from hivepipe.transcripts.description import describe
from hivepipe.transcripts.totals import Totals

SESSION = "7b1f0c9e-3a52-4d0e-9c55-0d6a1f2be111"
AGENT = "a41c09be77d2f0e13"
TOKEN = "sk-ant-api03-" + "Ab3" * 20
PRICES = built_in()
REDACTOR = Redactor().of_home(lambda: b"k" * 32)


def line(number: int, said: str = "", **more: Any) -> bytes:
    """Return a message of Claude in today's format; number n is n minutes after the first."""
    hours, minutes = divmod(number, 60)
    fields = {
        "type": "assistant",
        "uuid": f"uuid-{number}",
        "sessionId": SESSION,
        "timestamp": f"2026-01-10T{hours:02d}:{minutes:02d}:00.000Z",
        "cwd": "/home/ana/shop",
        "requestId": f"req-{number}",
        "message": {
            "id": f"msg-{number}",
            "role": "assistant",
            "model": "claude-opus-4-5-20251101",
            "content": [{"type": "text", "text": said or f"answer {number}"}],
            "usage": {"input_tokens": 3, "output_tokens": number + 1},
            "stop_reason": "end_turn",
        },
    }
    return json.dumps({**fields, **more}, ensure_ascii=False).encode() + b"\n"


def lines(count: int, start: int = 0) -> bytes:
    return b"".join(line(number) for number in range(start, start + count))


@contextmanager
def full_disk(room_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size, as a full disk does."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def totals_of(lines: Iterable[bytes]) -> Totals:
    """Return the totals of a transcript that is read at once."""
    read = Totals()
    for each in lines:
        read.feed(each)
    return read


class Scene:
    """A home folder with transcripts and an archive; `fresh` forgets the archive's state."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / ".claude" / "projects" / "-home-ana-shop"
        self.project.mkdir(parents=True, exist_ok=True)
        self.path = self.project / f"{SESSION}.jsonl"
        self.kept = root / "shop" / ".claude-state" / "logs"
        self.fresh()

    def fresh(self) -> None:
        self.home = self.root / "shop" / ".hive-mind"
        self.home.mkdir(parents=True, exist_ok=True)
        self.redactor = REDACTOR
        self.archives = Archives(str(self.kept), Manifest(str(self.home)))

    def callbacks(self, should_stop: Callable[[], bool] = lambda: False) -> ArchiveCallbacks:
        return ArchiveCallbacks(
            self.redactor,
            lambda totals, subagents: describe(totals, PRICES, subagents),
            self._on_chunk,
            should_stop=should_stop,
        )

    def _on_chunk(self, _source: Source, _path: str, chunk: Chunk) -> None:
        """Add the ids of messages with reported usage to a file that survives a kill."""
        with (self.root / "reported").open("a") as reported:
            reported.writelines(f"{usage.message_id}\n" for usage in chunk.usages)

    def reported(self) -> list[str]:
        """Return the ids of messages whose usage was reported, once for each report."""
        path = self.root / "reported"
        return path.read_text().split() if path.exists() else []

    @contextmanager
    def source(self, path: Path | None = None, **said: str) -> Iterator[Source]:
        with open_source(str(path or self.path), **said) as source:
            yield source

    def extend(self, path: Path | None = None, *, settled: bool = False, **said: str) -> int:
        with self.source(path, **said) as source:
            return self.archives.extend(source, self.callbacks(), settled=settled)

    def agent_path(self, agent: str = AGENT, session: str = SESSION) -> Path:
        folder = self.project / session / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"agent-{agent}.jsonl"

    def age_files(self, days: float) -> None:
        """Set the time of every file of the archive to so many days ago."""
        past = time.time() - days * 86_400
        for path in self.kept.rglob("*"):
            os.utime(path, (past, past))

    def only(self, pattern: str) -> Path:
        (found,) = self.kept.rglob(pattern)
        return found

    @property
    def archived(self) -> bytes:
        return self.only(f"*_{SESSION}.jsonl").read_bytes()

    @property
    def meta(self) -> dict[str, Any]:
        """The session's metadata after its transcript has settled."""
        self.extend(settled=True)
        found: dict[str, Any] = json.loads(self.only(f"*_{SESSION}.meta.json").read_bytes())
        return found

    def index(self) -> dict[str, Any]:
        said = json.loads((self.kept / "archive-index.json").read_bytes())
        assert said["schema"] == 1
        found: dict[str, Any] = said["archives"]
        return found

    def files(self) -> dict[str, bytes]:
        """Return all files of the archive with their bytes, without hidden files and folders."""
        found = {}
        for folder, _, names in os.walk(self.kept):
            for name in names:
                path = Path(folder, name)
                if "/." not in str(path.relative_to(self.kept.parent)):
                    found[str(path.relative_to(self.kept))] = path.read_bytes()
        return found


def use_small_chunks(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make a small transcript of a user in a folder take several chunks and store its totals."""
    monkeypatch.setattr("hivepipe.archive.sources.user_folder", lambda: str(folder))
    monkeypatch.setattr(reading, "CHUNK_BYTES", 1500)
    monkeypatch.setattr(append, "PORTION_BYTES", 3000)
    monkeypatch.setattr(totals, "GROWTH_PER_SIZE", 0.5)
