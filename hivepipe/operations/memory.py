"""Index the memory files of a session's folders, and search them.

The folders are `memory` in the folder of a profile, Claude Code's folder for the project, and the
user's `memory_dirs`.
"""

import hashlib
import logging
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from hivepipe import settings
from hivepipe.agents.memory.chunks import chunks
from hivepipe.agents.memory.embeddings import Provider, embed, similarity
from hivepipe.agents.memory.index import AGENT, SWARM, Folder, Hit, MemoryIndex, opened_index
from hivepipe.db.memory_ratings import name_of
from hivepipe.errors import CredentialsError, EmbeddingError, MemoryIndexError
from hivepipe.home import short_hash
from hivepipe.hook.identity_snapshots import read_regular
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.profiles import IndexMemory
from hivepipe.operations.job_context import JobContext
from hivepipe.operations.recall import prepare_recall, usefulness_in
from hivepipe.redact import redact_text
from hivepipe.summaries.providers import EMBEDDINGS_KEY, kept_secret

SUFFIXES = (".md", ".txt")
MOST_FILES = 5_000
AT_ONCE = 64  # texts per request
WORDS_WEIGHT = 1.0
RATED_WEIGHT = 0.1
LATEST_NS = 2**63 - 1  # SQLite's largest integer; as a time in the year 2262
_PRIMARY_CODE = 0xFF  # mask for the primary part of SQLite's extended result codes

CheckStop = Callable[[], None]

logger = logging.getLogger("hivepipe.memory")


def index_path(home: str) -> Path:
    return Path(home, "memory.db")


def index_memory(context: JobContext, job: Origin, args: IndexMemory) -> None:
    """Update the memory index from the folders of a session."""
    index_folders(context, _named_folders(job, args))


def index_folders(context: JobContext, added: Iterable[Folder] = ()) -> None:
    """Add folders to the memory index, and update the index from all of its folders.

    A damaged index is logged; the next search reports it. Raise OSError or sqlite3.OperationalError
    if the index is locked or the disk is full.
    """
    try:
        with opened_index(index_path(context.home)) as index:
            for folder in added:
                index.remember_folder(folder)
            update_index(context.home, index, context.check_stop)
            embed_missing(index, context.check_stop)
    except MemoryIndexError as error:
        cause = error.__cause__
        if cause and _is_temporary(cause, index_path(context.home)):
            raise cause from None
        logger.warning("memories are not indexed: %s", error)


def _is_temporary(error: BaseException, path: Path) -> bool:
    """Tell whether an error may go away by itself: a lock, a full disk, too many open files.

    SQLITE_CANTOPEN and SQLITE_READONLY can go away if the user can read and write the file.
    SQLITE_ERROR does not go away: it means that a table is missing.
    """
    if isinstance(error, sqlite3.OperationalError):
        code = error.sqlite_errorcode & _PRIMARY_CODE
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            return path.is_file() and os.access(path, os.R_OK | os.W_OK)
        return code != sqlite3.SQLITE_ERROR
    return isinstance(error, OSError)


def _named_folders(job: Origin, args: IndexMemory) -> Iterator[Folder]:
    """Yield the folders that a job names. Folders inside the profile's folder have scope AGENT."""
    own = args.profile_folder
    for path in args.folders.split("\n"):
        if not path.startswith("/"):
            continue
        is_own = bool(own) and f"{path}/".startswith(f"{own}/")
        swarm = args.swarm or f"swarm-{short_hash(job.project)}"
        yield Folder(path, *((AGENT, args.profile_id) if is_own else (SWARM, swarm)))


def update_index(home: str, index: MemoryIndex, check_stop: CheckStop = lambda: None) -> None:
    """Update the memory index: add changed files, drop missing files; prepare files for hooks."""
    for named in (settings.variable("HIVEPIPE_MEMORY_DIRS") or "").split(":"):
        if named.startswith("/"):
            index.remember_folder(Folder(os.path.realpath(named), SWARM, ""))
    for folder in index.folders():
        known = {row["path"]: row for row in index.files(folder.path)}
        for path, stamp in _files_in(folder.path):
            check_stop()
            row = known.pop(path, None)
            if row is None or (row["size"], row["mtime_ns"]) != stamp:
                _index(index, folder.path, path, stamp, row["sha256"] if row else "")
        for path in known:
            index.remove(path)
    prepare_recall(home, index)


def _index(index: MemoryIndex, folder: str, path: str, stamp: tuple[int, int], before: str) -> None:
    data = read_regular(path)
    if data is None:
        index.remove(path)
        return
    digest = hashlib.sha256(data).hexdigest()
    if digest == before:
        index.touch(path, stamp)
    else:
        text = redact_text(data.decode("utf-8", "replace"))
        index.put(path, folder, stamp, digest, chunks(text))


def _files_in(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield path and (size, modification time) of a folder's memory files, without links."""
    count = 0
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = f"{root}/{name}"
            if not name.endswith(SUFFIXES) or name.startswith("."):
                continue
            try:
                status = os.lstat(path)
            except OSError:
                continue
            count += 1
            if count > MOST_FILES:
                logger.warning("%s has more than %d files: the rest is ignored", folder, MOST_FILES)
                return
            if path != path.encode("utf-8", "replace").decode():  # SQLite needs UTF-8
                logger.warning("a memory is ignored, its name is not UTF-8: %a", path)
            elif stat.S_ISREG(status.st_mode):
                changed_ns = max(min(status.st_mtime_ns, LATEST_NS), -LATEST_NS)
                yield path, (status.st_size, changed_ns)


# ---- search by meaning


def provider() -> Provider | None:
    """Return the embeddings provider, or None. Raise CredentialsError for an untrusted key file."""
    url = settings.variable("HIVEPIPE_EMBEDDINGS_URL")
    model = settings.variable("HIVEPIPE_EMBEDDINGS_MODEL")
    if not url or not model:
        return None
    return Provider(url, model, kept_secret(EMBEDDINGS_KEY))


def embed_missing(index: MemoryIndex, check_stop: CheckStop = lambda: None) -> None:
    """Embed the chunks without a vector. A failure of the provider is logged as a warning."""
    try:
        embedder = provider()
        while embedder and (missing := index.without_vector(embedder.model, AT_ONCE)):
            check_stop()
            vectors = embed(embedder, [text for _, text in missing])
            ids = [id for id, _ in missing]
            index.put_vectors(embedder.model, zip(ids, vectors, strict=True))
    except (CredentialsError, EmbeddingError) as error:
        logger.warning("memories are searched by words only: %s", error)


def search(home: str, index: MemoryIndex, query: str, words: str, limit: int) -> list[Hit]:
    """Return the best chunk of each file, by words and, with a provider, by meaning.

    At most `limit` chunks are returned, the best one first. `words` is the query in FTS5 syntax.
    Useful ratings raise the score, other ratings lower it. Raise MemoryIndexError or StoreError if
    a database cannot be read.
    """
    by_words = index.find_words(words, 10 * limit) if words else []
    best = max((score for _, score in by_words), default=0.0) or 1.0
    scores = {chunk: WORDS_WEIGHT * score / best for chunk, score in by_words}
    try:
        if embedder := provider():
            (vector,) = embed(embedder, [redact_text(query)])
            for chunk, other in index.vectors(embedder.model):
                scores[chunk] = scores.get(chunk, 0.0) + similarity(vector, other)
    except (CredentialsError, EmbeddingError) as error:
        logger.warning("searched by words only: %s", error)
    rated = usefulness_in(home)
    found: dict[str, Hit] = {}
    for chunk, score in scores.items():
        hit = index.hit(chunk, score)
        if hit is None:
            continue
        rating = max(-5, min(5, rated.get(name_of(hit.path), 0)))
        hit = replace(hit, score=score + RATED_WEIGHT * rating)
        if hit.path not in found or found[hit.path].score < hit.score:
            found[hit.path] = hit
    return sorted(found.values(), key=lambda hit: (-hit.score, hit.path))[:limit]
