"""Prepare memories as files for hooks, so that no hook opens the index; record recalled memories.

<home>/recall/*.txt    see hivepipe.hook.recall; mode 0600, replaced atomically
"""

import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from hivepipe import settings
from hivepipe.agents.memory.index import AGENT, MemoryIndex, Passage
from hivepipe.config.trust import untrusted
from hivepipe.db.database import Database
from hivepipe.db.listings import listings
from hivepipe.db.location import database_path
from hivepipe.db.memory_ratings import name_of, record_retrieval, usefulness
from hivepipe.errors import BadEnvelopeError
from hivepipe.home import make_folders, read_small, short_hash, write_small
from hivepipe.hook.recall import MOST_MEMORIES, PART_BYTES, part_path, wanted_path, words_of
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.profiles import RecordRecall

MOST_PASSAGES = 800  # passages kept of one part: the newest
MOST_CHARS = 600  # characters kept of one passage
COMMON_SHARE = 0.2  # a word in a larger share of the passages is ignored
COMMON_AT_LEAST = 3
KEPT_DAYS = 7
_WEIGHT = 10
_RATED = 0.1
_MOST_RATING = 5

# English stop words. Common words of other languages are ignored because of their frequency.
_STOP_WORD_LIST = """
about after again all also an and any are as at be been before but by can could did do does
don for from get had has have how if in into is it its just let like make me more my need no
not now of off on one only or other our out over please same she should so some such than that
the their them then there these they thi this to too up us use used using very wa was want we
were what when where which while who why will with would yes you your
"""
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())


def is_wanted(home: str) -> bool:
    """Tell whether recall is on, or was on in a session that started within the last week."""
    if settings.means_yes(settings.of_files("HIVEPIPE_MEMORY_RECALL") or ""):
        return True
    try:
        wanted_at = os.stat(wanted_path(home)).st_mtime
    except OSError:
        return False
    return time.time() - wanted_at < KEPT_DAYS * 86_400


_PARTS = ("all", "swarm-", "profile-")  # prefixes of the parts of `_by_part`


def prepare_recall(home: str, index: MemoryIndex) -> None:
    """Write the files of memories that hooks read; remove obsolete files. May raise OSError."""
    folder = Path(home, "recall")
    by_part = _by_part(_trusted(home, index)) if is_wanted(home) else {}
    rated = usefulness_in(home) if by_part else {}
    remove_parts(home, kept=by_part)
    for part, passages in by_part.items():
        text = _part_text(passages, rated)
        if read_small(part_path(home, part), PART_BYTES) != text:
            make_folders(str(folder))
            write_small(part_path(home, part), text)
    _remove_old_notes(folder)


def remove_parts(home: str, kept: Container[str] = ()) -> None:
    """Remove the files of memories that hooks read, except the files whose name is in `kept`."""
    for path in [*Path(home, "recall").glob("*.txt")]:
        if path.stem not in kept and path.stem.startswith(_PARTS):
            path.unlink(missing_ok=True)


def _trusted(home: str, index: MemoryIndex) -> Iterator[Passage]:
    """Yield the passages of the user's own files and of trusted files of a repository."""
    others = untrusted(home, [(row["path"], row["sha256"]) for row in index.files()])
    return (passage for passage in index.passages() if passage.path not in others)


def _by_part(passages: Iterable[Passage]) -> dict[str, list[Passage]]:
    found: dict[str, list[Passage]] = defaultdict(list)
    for passage in passages:
        if passage.scope == AGENT:
            part = f"profile-{passage.owner}"
        else:
            part = f"swarm-{short_hash(passage.owner)}" if passage.owner else "all"
        if len(found[part]) < MOST_PASSAGES:
            found[part].append(passage)
    return found


def _part_text(passages: list[Passage], rated: dict[str, int]) -> str:
    """Return passages as the text of one file; leave out the oldest ones beyond PART_BYTES."""
    while True:
        text = "\n".join([*sorted(_lines(passages, rated)), ""])
        if len(text.encode()) <= PART_BYTES:
            return text
        passages = passages[: len(passages) * 3 // 4]


def _lines(passages: list[Passage], rated: dict[str, int]) -> Iterator[str]:
    having: dict[str, list[int]] = defaultdict(list)
    for number, passage in enumerate(passages):
        stem = os.path.basename(passage.path).rpartition(".")[0]
        for word in words_of(f"{stem} {passage.text}"):
            if word not in _STOP_WORDS:
                having[word].append(number)
    common = max(COMMON_AT_LEAST, len(passages) * COMMON_SHARE)
    factors = [_factor(rated.get(name_of(passage.path), 0)) for passage in passages]
    for word, numbers in having.items():
        if len(numbers) <= common:
            weight = _WEIGHT * math.log(1 + len(passages) / len(numbers))
            yield " ".join([word, *[f"{n}:{round(weight * factors[n])}" for n in numbers]])
    for number, passage in enumerate(passages):
        fields = {"id": short_hash(passage.path), "path": passage.path}
        yield f"#{number} {json.dumps({**fields, 'text': passage.text[:MOST_CHARS]})}"


def _factor(rating: int) -> float:
    return 1 + _RATED * max(-_MOST_RATING, min(_MOST_RATING, rating))


def usefulness_in(home: str) -> dict[str, int]:
    """Return memory -> useful minus other ratings, {} without a database. May raise StoreError."""
    path = database_path(home)
    if not path.exists():
        return {}
    with listings(path) as store:
        return usefulness(store)


def _remove_old_notes(folder: Path) -> None:
    """Remove the files `told-*` of sessions that have recalled no memory for a week."""
    for path in folder.glob("told-*"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > KEPT_DAYS * 86_400:
                path.unlink()


# ---- recalled memories


def record_recall(db: Database, job: Origin, args: RecordRecall) -> None:
    """Record the memories that a prompt recalled; the session's summary may rate them.

    Raise BadEnvelopeError if they are too many or invalid.
    """
    if len(args.memories) > MOST_MEMORIES:
        raise BadEnvelopeError("there are too many memories")
    for memory in args.memories:
        if not isinstance(memory, dict):
            raise BadEnvelopeError("a memory is not an object")
        name, text = memory.get("name"), memory.get("text")
        if not isinstance(name, str) or not isinstance(text, str):
            raise BadEnvelopeError("a memory has no name or no text")
        record_retrieval(db, job.session, name, text, job.time)
