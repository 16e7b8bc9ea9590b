"""The shared disk: a profile may write only to `<root>/<category>/<own id>/`.

The profile's folder is made when a write into its category is judged for the first time.

The rule applies if HIVEPIPE_SHARED_ROOT and HIVEPIPE_AGENT_ID are set. Reading is not restricted.
Paths are resolved as by the kernel. If the disk does not answer, paths are compared as text,
because a system call on a hung mount would block the hook, and no timer could end it. Hooks import
this module if a shared root is set.
"""

import posix

from hivepipe.events import claude_code
from hivepipe.events.claude_code import PostToolUse, PostToolUseFailure, PreToolUse, ToolEvent
from hivepipe.guard.rules import SHARED_DISK, Verdict
from hivepipe.guard.shell_writes import FOLDER_OR_LINK, LINK, TARGET, writes_of
from hivepipe.home import absolute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hivepipe.guard.shell_text import Word

READ_ONLY = ("erofs", "read-only file system")  # the error code of Node, and the system's message
_LINKS_AT_MOST = 40
_LONGEST_PATTERN = 1000  # a name has 255 bytes; the time of `fnmatch` is quadratic
_FILE_KIND, _IS_FOLDER = 0o170000, 0o040000
_PATTERN = set("*?[")
_OF_FOLDERS = ("/", "/.", "/..")


class SharedDisk:
    """The shared disk, and the rights of one profile on it."""

    def __init__(self, root: str, profile: str, is_silent: bool) -> None:
        """`is_silent` means that the disk did not answer at the last check."""
        self._is_silent = is_silent
        self._folders: dict[str, str] = {}  # folder -> its resolved path
        self._links: dict[str, str] = {}  # that the command makes: resolved path -> target
        self._named = absolute(root).rstrip("/")
        self._profile = profile

    @property
    def _root(self) -> str:
        return self._resolved_folder(self._named)

    def verdict(self, event: PreToolUse) -> Verdict | None:
        """Return the denial of a call, a warning or None.

        A command gets the warning if it names the shared root and may write paths that are unknown.
        """
        if event.tool in claude_code.EDIT_TOOLS:
            return self._denial(event.cwd, event.file_path) if event.file_path else None
        if event.tool != "Bash":
            return None
        writes = writes_of(event.command, event.cwd)
        for folder, target, path in writes.links:
            place = self._place(folder, path, LINK)
            if self._is_folder(self._resolved(place)):
                place = f"{place}/{target.rstrip('/').rpartition('/')[2]}"
            self._links[place] = target
        for folder, tree, link in writes.trees:
            if self._is_in(folder, tree, link):
                return Verdict(SHARED_DISK, 0, True, self._advice(""))
        for folder, path, link in writes.paths:
            denied = self._denial(folder, path, link)
            if denied:
                return denied
        if not writes.is_readable and self._named in event.command:
            return Verdict(SHARED_DISK, 0, False, self._advice(""))
        return None

    def hint(self, event: ToolEvent) -> str:
        """Return advice for an agent whose write failed, or ""."""
        text = ""
        if isinstance(event, PostToolUseFailure) and isinstance(event.outcome, str):
            text = event.outcome
        elif isinstance(event, PostToolUse) and event.tool == "Bash":
            stderr = event.response.get("stderr")
            text = stderr if isinstance(stderr, str) else ""
        words = " ".join(text.lower().split())  # the text may be wrapped
        return self._advice("") if any(term in words for term in READ_ONLY) else ""

    def _is_in(self, folder: str, tree: "Word", link: int) -> bool:
        """Tell whether the path or pattern `tree` contains the shared root.

        Also return True for a pattern that matches everything in the shared root.
        """
        if tree.literal or not _PATTERN & set(tree.text):  # such as `build` of `{*.o,build}`
            return f"{self._root}/".startswith(f"{self._place(folder, tree.text, link)}/")
        names = tree.text.rstrip("/").split("/")
        first = next(at for at, name in enumerate(names) if set(name) & _PATTERN)
        above = f"{self._place(folder, '/'.join([*names[:first], '']))}/"
        below = f"{self._root}/".removeprefix(above).split("/")[:-1]
        return (
            f"{self._root}/".startswith(above)
            # the root, or all categories in it
            and len(names) - first <= len(below) + (names[-1] == "*")
            and all(
                _matches(part, name) and (part[0] != "." or name[0] == ".")
                for part, name in zip(below, names[first:], strict=False)
            )
        )

    def _denial(self, folder: str, path: str, link: int = TARGET) -> Verdict | None:
        place = self._place(folder, path, link)
        if place != self._root and not place.startswith(f"{self._root}/"):
            return None
        category, _, rest = place[len(self._root) + 1 :].partition("/")
        owner, _, name = rest.partition("/")
        if rest:
            self._make_own_folder(category)
        is_pattern = set(owner) & _PATTERN and (owner != "*" or name)
        if owner == self._profile or (is_pattern and _matches(self._profile, owner)):
            return None
        is_folder = path.endswith(_OF_FOLDERS) or self._is_folder(place)
        if not rest:
            return Verdict(SHARED_DISK, 0, True, self._advice("", category if is_folder else ""))
        # `notes/bot-2/` is another profile's folder, `notes/a.md` a file that belongs in the
        # profile's own folder.
        name = name or ("" if is_folder else owner)
        return Verdict(SHARED_DISK, 0, True, self._advice(name, category))

    def _place(self, folder: str, path: str, link: int = TARGET) -> str:
        """Return the resolved path; `link` says whether a link at its end is followed."""
        if path.startswith(("/", "~")):
            start, path = "", absolute(path)
        else:
            start = self._resolved_folder(absolute(folder))
        parent, _, name = path.rpartition("/")
        if link != TARGET and name not in ("", ".", ".."):
            place = f"{self._resolved(parent, start)}/{name}"
            if link != FOLDER_OR_LINK or not self._is_folder(place):
                return place
        return self._resolved(path, start)

    def _resolved_folder(self, folder: str) -> str:
        """Return a resolved working folder.

        The results for this folder and for each folder above it are cached for later calls.
        """
        known, names = folder, []
        while known and known not in self._folders:
            known, _, name = known.rpartition("/")
            names.append(name)
        place = self._folders.get(known, "")
        for name in reversed(names):
            known = f"{known}/{name}"
            place = self._folders[known] = self._resolved(name, place)
        return place

    def _is_folder(self, place: str) -> bool:
        if self._is_silent:
            return False
        try:
            return posix.stat(place).st_mode & _FILE_KIND == _IS_FOLDER
        except (OSError, ValueError):
            return False

    def _make_own_folder(self, category: str) -> None:
        """Make the profile's folder at the first write into a category; the umask applies."""
        if not self._is_silent:
            try:
                posix.mkdir(f"{self._root}/{category}/{self._profile}")
            except OSError:  # the folder exists, the category does not, or the disk is read-only
                return

    def _advice(self, name: str, category: str = "<category>") -> str:
        own = f"{self._named}/{category or '<category>'}/{self._profile}/{name}"
        return f"On the shared disk you write into your own folder only: {own}"

    def _resolved(self, path: str, place: str = "") -> str:
        """Resolve `..` and links of `path`, which is relative to `place` and need not exist."""
        pending = path.split("/")[::-1]
        links = 0
        while pending:
            part = pending.pop()
            if part in ("", "."):
                continue
            if part == "..":
                place = place.rpartition("/")[0]
                continue
            below = f"{place}/{part}"
            target = self._links.get(below, "") if self._links else ""
            if not target and not self._is_silent:
                target = _link_target(below)
            if target and links < _LINKS_AT_MOST:
                links += 1
                pending += target.split("/")[::-1]
                place = "" if target.startswith("/") else place
            else:
                place = below
        return place


def _matches(name: str, pattern: str) -> bool:
    from fnmatch import fnmatchcase  # noqa: PLC0415  few commands have a pattern

    return len(pattern) < _LONGEST_PATTERN and fnmatchcase(name, pattern.replace("[^", "[!"))


def _link_target(path: str) -> str:
    try:
        return posix.readlink(path)
    except (OSError, ValueError):
        return ""
