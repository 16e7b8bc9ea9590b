"""Back up everything that a home keeps into one file, and restore it.

<file>.tar.gz
    manifest.json     version, time, SHA-256 of each file, and which files hivepipe made
    hive.db           copied by VACUUM INTO, which is consistent during concurrent writes
    config.toml       if the home has one
    redaction.key     so that the tags of secrets stay the same
    kept/...          archives, indexes, exports, audit log
"""

import gzip
import hashlib
import io
import json
import os
import shutil
import sqlite3
import tarfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from hivepipe.archive.search.index_file import remove_index
from hivepipe.db.copies import copy_to, error_of
from hivepipe.db.listings import is_unused
from hivepipe.db.location import database_path
from hivepipe.db.tree import mark
from hivepipe.errors import BackupError
from hivepipe.files.disk_room import free_bytes, has_less
from hivepipe.files.logs import NAMES as LOGS
from hivepipe.files.manifest import Manifest, OwnFile
from hivepipe.files.regular_file import read_bytes, regular
from hivepipe.home import kept_folder, tree_of
from hivepipe.install.data import size_of
from hivepipe.maintenance.summed_file import SummedFile
from hivepipe.maintenance.work_folder import work_folder
from hivepipe.operations.search import index_path
from hivepipe.redact.home_key import FILE as KEY

MANIFEST = "manifest.json"
DATABASE = "hive.db"
SETTINGS = "config.toml"
FORMAT = 2  # format 1 contained no key
_LEFT_OUT = (".lock", ".tmp", ".learned")  # hashes of secrets must not leave the machine
_MANIFEST_BYTES = 64 << 20
_MEMBER_BYTES = 4096  # least space of a file on disk
MOST_TIMES = 100  # the backup's size, at most, when unpacked: text needs 10, zeros need 1,000
LEAST_ROOM_BYTES = 64 << 20
LEFT_FREE_BYTES = 256 << 20


def back_up(
    home: str, target: Path, on_read: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """Write the backup atomically; return its manifest. Raises HivepipeError or OSError.

    `on_read` is called with the number of bytes after each part of a file that was read.
    """
    if target.exists():
        raise BackupError(f"{target} exists: nothing is overwritten")
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    sums: dict[str, str] = {}
    try:
        with work_folder(home, ".backup-") as folder:
            copy = Path(folder, DATABASE)
            has_store = copy_to(database_path(home), copy)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                with tarfile.open(fileobj=file, mode="w:gz") as tar:
                    for path, name in _parts(home, copy if has_store else None):
                        if not _add(tar, path, name, sums, on_read):
                            # An archive may have been compressed or unpacked in between
                            other = Path(_other_form(str(path)))
                            _add(tar, other, _other_form(name), sums, on_read)
                    manifest = _manifest(home, sums)
                    _add_text(tar, MANIFEST, json.dumps(manifest, indent=1))
                file.flush()
                os.fsync(file.fileno())
        _publish(temporary, target)
    except FileExistsError:
        raise BackupError(f"{target} exists: nothing is overwritten") from None
    finally:
        temporary.unlink(missing_ok=True)
    return manifest


def _publish(temporary: Path, target: Path) -> None:
    """Rename the complete file to its final name; raise FileExistsError if that is taken now."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links
        if target.exists():
            raise FileExistsError from None
        os.rename(temporary, target)


def _parts(home: str, database: Path | None) -> Iterator[tuple[Path, str]]:
    if database:
        yield database, DATABASE
    for name in (SETTINGS, KEY):
        if Path(home, name).is_file():
            yield Path(home, name), name
    kept = Path(kept_folder(home))
    for path in sorted(kept.rglob("*")):
        is_file = path.is_file() or not path.exists()  # a missing file may exist in its other form
        if is_file and not path.is_symlink() and path.suffix not in _LEFT_OUT:
            yield path, f"kept/{path.relative_to(kept)}"


def _add(
    tar: tarfile.TarFile,
    path: Path,
    name: str,
    sums: dict[str, str],
    on_read: Callable[[int], None],
) -> bool:
    """Add a file to the backup once, with its current size; return False if it was deleted.

    Raise BackupError if it cannot be read.
    """
    if name in sums:
        return True
    try:
        descriptor = regular(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror}") from error
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(file.fileno())
        member = tarfile.TarInfo(name)
        member.size, member.mtime, member.mode = status.st_size, int(status.st_mtime), 0o600
        summed = SummedFile(file, member.size, on_read)
        tar.addfile(member, summed)
        sums[name] = summed.digest.hexdigest()
    return True


def _other_form(path: str) -> str:
    return path.removesuffix(".gz") if path.endswith(".gz") else f"{path}.gz"


def _add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    data = text.encode()
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
    tar.addfile(member, io.BytesIO(data))


def _manifest(home: str, sums: dict[str, str]) -> dict[str, Any]:
    own = Manifest(home)
    knows_all = own.fact("installed_at") and not own.fact("adopts")
    return {
        "format": FORMAT,
        "hivepipe": version("hivepipe"),
        "created_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "home": home,
        "sha256": sums,
        "made": own.files() if knows_all else None,
    }


# ---- restore


def restore(
    home: str,
    source: Path,
    *,
    replace: bool,
    with_settings: bool = False,
    any_size: bool = False,
) -> dict[str, Any]:
    """Restore a backup; return its manifest with the paths `before` and `settings`.

    With `replace`, existing data is moved to the folder `before`. The settings of the backup take
    effect only with `with_settings`, because they name programs and addresses, and the author of
    the backup wrote them. Otherwise they are stored in the file `settings`.

    The caller makes sure that no process of the stack runs, and sets the umask. Raises BackupError,
    StoreError or OSError.
    """
    os.makedirs(home, mode=0o700, exist_ok=True)
    with _unpacked(home, source, any_size) as (folder, manifest):
        places = {DATABASE: database_path(home), KEY: Path(home, KEY)}
        if with_settings:
            places[SETTINGS] = Path(home, SETTINGS)
        brought = {name: place for name, place in places.items() if Path(folder, name).is_file()}
        kept = Path(kept_folder(home))
        for name, place in {**brought, "kept": kept}.items():
            _refuse_full_disk(Path(folder, name), place)
        before = _moved_aside(home, brought.get(SETTINGS), replace)
        if before and KEY in brought and Path(home, KEY).exists():
            _move(Path(home, KEY), before / KEY)
        settings = None if with_settings else _settings_beside(home, Path(folder, SETTINGS))
        if DATABASE in brought and tree_of(home):
            mark(home, Path(folder, DATABASE))
        for name, place in brought.items():
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _move(Path(folder, name), place)
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        if Path(folder, "kept").is_dir():
            # Moved, not copied: the disk may have no room for a second copy.
            shutil.copytree(
                Path(folder, "kept"), kept, dirs_exist_ok=True, copy_function=shutil.move
            )
    remove_index(index_path(home))  # the index has the lines of other archives
    _take_over(Manifest(home), manifest)
    beside = {"before": before, "settings": settings}
    return {**manifest, **{name: str(path) if path else None for name, path in beside.items()}}


def _refuse_full_disk(source: Path, place: Path) -> None:
    """Raise BackupError if the disk of `place` has no room for a copy of `source`.

    On the same disk, no copy is made.
    """
    there = next(path for path in place.parents if path.exists())
    is_copied = source.exists() and source.stat().st_dev != there.stat().st_dev
    if is_copied and has_less(there, size_of(str(source)) + LEFT_FREE_BYTES):
        raise BackupError(f"the disk of {there} has no room for {source.name} of the backup")


def _take_over(own: Manifest, restored: dict[str, Any]) -> None:
    """Record in the manifest which restored files hivepipe made.

    A backup of an older version does not list such files. Its archives are adopted later.
    """
    if restored["made"] is None:  # a version before 2026-11-25 wrote it
        own.set_adopts(adopts=True)
        return
    names = {name.removeprefix("kept/").removesuffix(".gz") for name in restored["sha256"]}
    made: dict[str, OwnFile] = restored["made"]
    own.take_over({path: made[path] for path in made if path in names or path in LOGS})


def _settings_beside(home: str, settings: Path) -> Path | None:
    """Store a backup's settings, if any, in a file that nothing reads; return its path, or None."""
    if not settings.is_file():
        return None
    folder = Path(home, "backups", f"settings-of-restore-{time.time_ns()}")
    folder.mkdir(mode=0o700, parents=True)
    _move(settings, folder / SETTINGS)
    return folder / SETTINGS


@contextmanager
def _unpacked(home: str, source: Path, any_size: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield folder and manifest of an unpacked, verified backup, or raise BackupError."""
    with work_folder(home, ".restore-") as folder:
        try:
            with gzip.open(source) as packed:
                room = _Room(home, source, any_size, packed)
                with tarfile.open(fileobj=room, mode="r|") as tar:
                    for member in tar:
                        room.take(_MEMBER_BYTES)
                        _extract(tar, member, folder)
        except ValueError as error:
            raise BackupError(f"{source} is damaged: {error}") from None
        except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
            raise BackupError(f"{source} cannot be read: {error}") from error
        manifest = _read_manifest(Path(folder, MANIFEST), source)
        unpacked = (path for path in Path(folder).rglob("*") if path.is_file())
        names = {str(path.relative_to(folder)) for path in unpacked}
        if unknown := names - {MANIFEST, *manifest["sha256"]}:
            raise BackupError(f"{source} is damaged: {min(unknown)} is not in its manifest")
        for name, digest in manifest["sha256"].items():
            if _sum(Path(folder, name)) != digest:
                raise BackupError(f"{source} is damaged: {name} does not match its checksum")
        if trouble := error_of(Path(folder, DATABASE)):
            raise BackupError(f"the database in {source} cannot be used: {trouble}")
        yield folder, manifest


class _Room(io.RawIOBase):
    """Reads unpacked bytes up to a limit, which protects the disk from a decompression bomb."""

    def __init__(self, home: str, source: Path, any_size: bool, packed: gzip.GzipFile) -> None:
        self._packed = packed
        self._source = source
        self._taken = 0
        of_file = source.stat().st_size * MOST_TIMES + LEAST_ROOM_BYTES
        room = (1 << 62 if (free := free_bytes(home)) is None else free) - LEFT_FREE_BYTES
        self._disk_is_full = room < of_file or any_size
        self._most = room if self._disk_is_full else of_file

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, which tarfile requests a few kB at a time."""
        data = self._packed.read(size)
        self.take(len(data))
        return data

    def take(self, count: int) -> None:
        """Count unpacked bytes. Raises BackupError if the limit is exceeded."""
        self._taken += count
        if self._taken <= self._most:
            return
        if self._disk_is_full:
            room = f"the {max(self._most, 0) >> 20} MB that may be used: {LEFT_FREE_BYTES >> 20} MB"
            raise BackupError(f"{self._source} unpacks to more than {room} of the disk stay free")
        raise BackupError(
            f"{self._source} unpacks to more than {MOST_TIMES} times its size, as no backup of "
            "hivepipe's does: check the file, and add --any-size if it is yours"
        )


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: str) -> None:
    """Write one file of a backup, or raise ValueError. Python 3.11.2 has no safe `extractall`."""
    data = tar.extractfile(member) if member.isreg() and _is_ours(member.name) else None
    if data is None:
        raise ValueError(f"{member.name} is not in its manifest")
    path = Path(folder, member.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with data, os.fdopen(descriptor, "wb") as file:
        shutil.copyfileobj(data, file)
    os.utime(path, (member.mtime, member.mtime))  # retention counts from this time


def _read_manifest(path: Path, source: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MANIFEST_BYTES:
            raise ValueError
        found = json.loads(read_bytes(path))
        names = found["sha256"]
        if not 1 <= found["format"] <= FORMAT:
            raise BackupError(f"a newer hivepipe ({found['hivepipe']}) wrote {source}")
        if not all(_is_ours(name) for name in names):
            raise ValueError
        made = msgspec.convert(found.get("made"), dict[str, OwnFile] | None)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BackupError(f"{source} is not a backup of hivepipe") from None
    return {**found, "made": made}


def _is_ours(name: str) -> bool:
    return name in (MANIFEST, DATABASE, SETTINGS, KEY) or (
        name.startswith("kept/") and ".." not in name.split("/")
    )


def _sum(path: Path) -> str:
    if not path.is_file() or path.is_symlink():
        return ""
    with open(path, "rb", opener=regular) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _moved_aside(home: str, settings: Path | None, replace: bool) -> Path | None:
    """Move existing data to a new folder; return that folder, or None if no data exists.

    A database without an event is deleted. `settings` is the settings file that will be replaced,
    or None. Raises BackupError if data exists and `replace` is not set.
    """
    database, kept = database_path(home), Path(kept_folder(home))
    log = Path(f"{database}-wal")
    there = [path for path in (database, log, kept, settings) if path and _has_content(path)]
    if not there:
        return None
    is_new = set(there) <= {database, log} and is_unused(database)  # as `init` leaves a home
    if not replace and not is_new:
        raise BackupError(f"{there[0]} exists already: --replace moves it to another folder")
    if is_new:  # there is nothing to keep, and `uninstall --purge` does not delete moved files
        for path in (database, log, Path(f"{database}-shm")):  # a reader, too, makes the last two
            path.unlink(missing_ok=True)
        return None
    if database.exists():
        # Merge the write-ahead log into the database; a damaged one is kept beside it.
        with suppress(sqlite3.Error), closing(sqlite3.connect(database)) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    aside = Path(home, "backups", f"before-restore-{time.time_ns()}")
    aside.mkdir(mode=0o700, parents=True)
    for path in there:
        if path.exists():
            _move(path, aside / path.name)
    for rest in ("-wal", "-shm"):
        Path(f"{database}{rest}").unlink(missing_ok=True)
    return aside


def _move(source: Path, target: Path) -> None:
    """Move a file atomically. The target may be on another file system, such as the database's."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    shutil.move(source, temporary)
    os.rename(temporary, target)


def _has_content(path: Path) -> bool:
    if not path.is_dir():
        return path.exists()
    return any(entry.name != ".gitignore" for entry in path.iterdir())
