"""Inside supervisord: continue while the disk accepts no log.

If supervisord cannot write a log, it prints the reason to stderr, which is a file that `start`
reads. On a full disk the write to stderr would fail too, and the error would end supervisord and
Redis. So output that cannot be written to stderr is dropped. supervisord loads this module as an
`rpcinterface`.
"""

import io
import sys
from typing import Any


class _Dropping(io.FileIO):
    """A file object that ignores failed writes."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(data)


def make(_supervisord: Any, **_config: str) -> object:
    """Replace `sys.stderr` by a file object that ignores failed writes."""
    raw = _Dropping(2, "wb", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw), errors="backslashreplace", line_buffering=True
    )
    return object()  # the plugin has no methods to call
