"""Edit files of the user so that each edit can be undone exactly.

For each edited file, the user's state folder has the previous content, and a checksum of the edited
content:

    <state>/hivepipe/changed/<hash of the path>/manifest.json
        path       of the file
        project    the project of the edit; empty for the user's own settings
        existed    whether the file existed before
        sha256     of the file after hivepipe's edit
        made       folders that were made for it
    <state>/hivepipe/changed/<hash of the path>/original

If the file is unchanged since this edit, its previous bytes are restored. If it was edited later,
the later edits are kept, and only hivepipe's part is removed.
"""

import hashlib
import json
import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hivepipe.errors import SettingsError, os_error_as
from hivepipe.files.regular_file import read_bytes
from hivepipe.files.typed_file import read_or
from hivepipe.home import short_hash, state_folder
from hivepipe.stack.lock import locked_folder
from hivepipe.stack.runtime_folder import make_private

WAIT_SECS = 10.0  # longest wait for another process, which writes only a few small files
Cleaner = Callable[[str], str]  # text -> the text without hivepipe's part


@dataclass(frozen=True)
class Edit:
    """A planned change of one file; `before` is None if the file does not exist."""

    path: str
    before: str | None
    after: str | None  # None means that the file is deleted
    is_restored: bool = False  # `after` is the user's original content


@dataclass(frozen=True)
class Manifest:
    """The manifest of an edited file, with the fields that the docstring of this module lists."""

    path: str
    project: str
    existed: bool
    sha256: str
    made: list[str]

    @property
    def original(self) -> str | None:
        """Return the content before hivepipe's edit, or None if the file did not exist."""
        return _text(read_bytes(_folder(self.path) / "original")) if self.existed else None

    def is_of(self, text: str | None) -> bool:
        """Tell whether the text is the result of hivepipe's edit, and the original is available."""
        return _sha256(text) == self.sha256 and self.has_original

    @property
    def has_original(self) -> bool:
        """Tell whether the content before hivepipe's edit is available."""
        return not self.existed or (_folder(self.path) / "original").is_file()


def read(path: str) -> str | None:
    """Return a file's text, or None if it does not exist.

    Raises SettingsError if the file cannot be changed. Bytes that are not UTF-8 are kept as
    surrogates, as in file names.
    """
    target = os.path.realpath(path)
    parent = _existing_parent(target)
    if not os.path.isdir(parent):
        raise SettingsError(f"{parent} is not a folder: {path} cannot be made")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise SettingsError(f"{parent} is read-only: {path} cannot be changed")
    try:
        if not stat.S_ISREG(os.stat(target).st_mode):
            raise SettingsError(f"{path} is not a regular file")
        if not os.access(target, os.W_OK):
            raise SettingsError(f"{path} is read-only")
        return _text(read_bytes(target))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from None


def make_undoable(edit: Edit, project: str, without_ours: Cleaner) -> None:
    """Write the manifest by which an edit can be undone, then make the edit as `make` does."""
    if read(edit.path) == edit.after:  # another process made the same edit
        return
    known = manifest_of(edit.path)
    before = edit.before
    if known and known.is_of(before):  # the file has our edit: keep the recorded original
        before = known.original
    elif before is not None:
        before = without_ours(before)
        if known and _is_left_over(known, before):
            before = None
    manifest = Manifest(
        path=edit.path,
        project=project,
        existed=before is not None,
        sha256=_sha256(edit.after),
        made=known.made if known else missing_folders(edit.path),
    )
    _remember(manifest, before or "")
    make(edit)


@contextmanager
def locked() -> Iterator[None]:
    """Keep other processes from making edits in the block. Raise LockHeldError after WAIT_SECS."""
    with locked_folder(state_folder(), WAIT_SECS):
        yield


def make_beneath(edit: Edit, change: Cleaner) -> None:
    """Make an edit that survives `undo`: `change` is also applied to the stored original."""
    known = manifest_of(edit.path)
    if known and known.is_of(edit.before):
        original = known.original
        changed = None if original is None else change(original)
        _remember(replace(known, sha256=_sha256(edit.after)), changed or "")
    make(edit)


def make(edit: Edit) -> None:
    """Write or delete the file atomically; raise SettingsError if it changed since it was read."""
    if edit.after == edit.before:
        return
    now = read(edit.path)
    if now == edit.after:  # another process made the same edit
        return
    if now != edit.before:
        raise SettingsError(f"{edit.path} was changed meanwhile: run the command again")
    target = Path(os.path.realpath(edit.path))
    with os_error_as(SettingsError, f"{edit.path} cannot be written"):
        if edit.after is None:
            target.unlink(missing_ok=True)
        else:
            for folder in missing_folders(edit.path):
                os.mkdir(folder, 0o775)  # the user's umask applies: it is their project's folder
            _replace(target, edit.after)


def undone(path: str, without_ours: Cleaner) -> Edit:
    """Return the edit that removes hivepipe's part of a file.

    A file that is unchanged since hivepipe's edit gets its original bytes. A file that hivepipe
    made is deleted if nothing else is in it. Raise SettingsError if the file cannot be changed.
    """
    text = read(path) if os.path.lexists(path) else None
    known = manifest_of(path)
    if text is None or not known:
        return Edit(path, text, text if text is None else without_ours(text))
    if known.is_of(text):
        return Edit(path, text, known.original, is_restored=True)
    after = without_ours(text)
    return Edit(path, text, None if _is_left_over(known, after) else after)


def undo(edit: Edit) -> None:
    """Make an edit of `undone` as `make` does, and delete the manifest of the file."""
    make(edit)
    known = manifest_of(edit.path)
    for folder in reversed(known.made if known else []):
        remove_if_empty(folder)
    shutil.rmtree(_folder(edit.path), ignore_errors=True)


def manifests() -> Iterator[Manifest]:
    for folder in sorted(Path(state_folder(), "changed").glob("*")):
        known = _manifest(folder)
        if known:
            yield known


def manifest_of(path: str) -> Manifest | None:
    return _manifest(_folder(path))


def _manifest(folder: Path) -> Manifest | None:
    return read_or(folder / "manifest.json", Manifest, None)


def follow_rename(old: str, project: str) -> None:
    """Store the manifests of a renamed project's edits under the new paths."""
    for known in list(manifests()):
        if known.project == old and known.has_original:
            path, *made = (renamed(each, old, project) for each in (known.path, *known.made))
            now = replace(known, path=path, project=project, made=made)
            _remember(now, known.original or "")
            if path != known.path:
                shutil.rmtree(_folder(known.path))


def renamed(path: str, old: str, project: str) -> str:
    """Return the path of a file after its project was renamed."""
    return f"{project}{path.removeprefix(old)}" if path.startswith(f"{old}/") else path


def missing_folders(path: str) -> list[str]:
    """Return the missing folders above a file, outermost first."""
    missing: list[str] = []
    folder = os.path.dirname(os.path.realpath(path))
    while not os.path.lexists(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    return missing


def remove_if_empty(folder: str) -> None:
    with suppress(OSError):
        os.rmdir(folder)


def _is_left_over(known: Manifest, text: str) -> bool:
    """Tell whether hivepipe made the file and the user has added nothing to the file.

    `text` is the content of the file without hivepipe's part.
    """
    return not known.existed and text.strip() in ("", "{}")


def _folder(path: str) -> Path:
    return Path(state_folder(), "changed", short_hash(path))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _sha256(text: str | None) -> str:
    return hashlib.sha256(_bytes(text or "")).hexdigest()


def _existing_parent(path: str) -> str:
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    return parent


def _remember(manifest: Manifest, original: str) -> None:
    folder = _folder(manifest.path)
    make_private(str(folder))
    _replace(folder / "original", original, mode=0o600)
    text = json.dumps(asdict(manifest), indent=2) + "\n"
    _replace(folder / "manifest.json", text, mode=0o600)


def _chown(path: Path, descriptor: int, before: os.stat_result) -> None:
    try:
        os.fchown(descriptor, before.st_uid, before.st_gid)
    except PermissionError:
        is_member = before.st_gid in (os.getegid(), *os.getgroups())
        ids = '"$(id -u)"' if is_member else '"$(id -u):$(id -g)"'
        command = f"sudo chown {ids} {shlex.quote(str(path))}"
        raise SettingsError(f"{path} belongs to another user or group: run `{command}`") from None


def _replace(path: Path, text: str, mode: int = 0o664) -> None:
    """Replace a file atomically and keep its owner and permissions. A new file gets `mode`.

    The content decides which commands run, so a new file is never writable by all users. The
    temporary file has a fixed name, so that the next edit removes a file that a crash left.
    """
    before = path.stat() if path.exists() else None
    temporary = path.with_name(f".{path.name}.hivepipe.tmp")
    temporary.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o600 if before else mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(_bytes(text))
            file.flush()
            if before:
                now = os.fstat(descriptor)  # a new file may get the group of its folder
                if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
                    _chown(path, descriptor, before)
                shutil.copystat(path, temporary)  # copies mode, access lists and other attributes
                os.utime(temporary)
            os.fsync(descriptor)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
