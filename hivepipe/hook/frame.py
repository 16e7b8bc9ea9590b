"""Read a frame: one event as the native hook sends it to the intake or writes it to the spool.

    HPv1    4 bytes
    head    size of the head: 4 bytes, little endian
    event   size of the event: 4 bytes, little endian
            the head itself: `name=value`, each ended by a zero byte
            the event itself, as Claude Code wrote it

    time       when the event was read, ns since 1970
    began      start of the hook on the monotonic clock, ns
    pid parent cwd arg trouble
    project    the registered folder, or the event's folder
    home       the project's home
    record     the registration record that the hook found
    stat       /proc/<pid>/stat of an ancestor, or of the hook itself if its parent has ended
    env        NAME=value

Unknown names are ignored. native/hook.c writes frames. The process `intake` and the conversion of
the spool read them.
"""

import posix
import sys

from hivepipe import sender, settings
from hivepipe.hook.stdin import LIMIT_BYTES, Input
from hivepipe.sender import Sender

MAGIC = b"HPv1"
PREFIX_BYTES = 12
MOST_HEAD_BYTES = 1 << 16
MOST_EVENT_BYTES = LIMIT_BYTES + 1  # limit of the spool; the intake gets at most 1 MB

Parts = tuple[int, int]  # sizes of the head and of the event


class Frame:
    __slots__ = ("arguments", "began_ns", "cwd", "event", "name", "sender")

    def __init__(self, data: bytes) -> None:
        """Parse a whole frame; raise ValueError if it is incomplete or of another version."""
        head_bytes, event_bytes = sizes(data)
        end = PREFIX_BYTES + head_bytes
        if len(data) != end + event_bytes:
            raise ValueError("torn")
        one: dict[bytes, bytes] = {}
        words: list[str] = []
        stats: dict[int, str] = {}
        environment: dict[bytes, bytes] = {}
        for part in data[PREFIX_BYTES:end].split(b"\0"):
            name, _, value = part.partition(b"=")
            if name == b"env":
                variable, _, text = value.partition(b"=")
                environment[variable] = text
            elif name == b"stat":
                stats[int(value.partition(b" ")[0])] = _text(value)
            elif name == b"arg":
                words.append(_text(value))
            else:
                one[name] = value
        self.sender = Sender(int(one[b"pid"]), int(one[b"parent"]), int(one[b"time"]))
        self.sender.stats, self.sender.environment = stats, environment
        if b"record" in one:
            project, home, record = (_text(one[name]) for name in (b"project", b"home", b"record"))
            self.sender.place = project, home, record
        self.began_ns = int(one[b"began"])
        self.cwd = one.get(b"cwd", b"")
        self.event = Input(data[end:], _text(one.get(b"trouble", b"")))
        self.name = words[0].title().replace("_", "") if words else ""
        self.arguments = words[1:]

    def act_as_sender(self) -> None:
        """Adopt environment, arguments and folder of the sender, until the next frame is used."""
        sender.use(self.sender)
        sys.argv = ["hook", *self.arguments]
        settings.use({})
        try:
            posix.chdir(self.cwd)
        except OSError:  # the folder was deleted, or a sandbox shows the sender other folders
            posix.chdir("/")


def sizes(data: bytes) -> Parts:
    """Return the sizes of head and event; raise ValueError for another version."""
    head = int.from_bytes(data[4:8], "little")
    event = int.from_bytes(data[8:12], "little")
    if data[:4] != MAGIC or head > MOST_HEAD_BYTES or event > MOST_EVENT_BYTES:
        raise ValueError("not a frame of this version")
    return head, event


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
