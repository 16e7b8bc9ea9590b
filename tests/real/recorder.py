"""Hooks that store every payload of the client, for comparison with hivepipe's own hooks.

They are in the user's settings, for each event that the client declares, and print nothing. A hook
on WorktreeCreate is left out, because it would replace the client's own creation of worktrees.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from tests.real.names import Names, declared_events, merged, of_line, of_payload

REPLACES_GIT = "WorktreeCreate"
KEEP = """#!/bin/sh
exec 2> /dev/null
file=$(mktemp {folder}/XXXXXXXXXX) && cat > "$file"
exit 0
"""
events_of = lru_cache(declared_events)  # The function reads some hundred megabytes.


class Recorder:
    """Payloads and transcripts of a client in one home folder."""

    def __init__(self, root: Path, home: Path, client: Path) -> None:
        """Install hooks that store each payload below `root`."""
        self.home = home
        self.folder = root / "payloads"
        self.folder.mkdir()
        program = root / "keep"
        program.write_text(KEEP.format(folder=self.folder))
        program.chmod(0o755)
        entry = [{"hooks": [{"type": "command", "command": str(program), "timeout": 10}]}]
        events = [name for name in events_of(client) if name != REPLACES_GIT]
        settings = home / ".claude" / "settings.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"hooks": dict.fromkeys(events, entry)}, indent=2))

    def payloads(self) -> list[dict[str, Any]]:
        """Return the complete payloads; a killed client may leave an incomplete one."""
        return [*self._objects(path.read_text() for path in self.folder.iterdir())]

    def names(self) -> Names:
        """Return the names in all payloads and in all lines of transcripts."""
        transcripts = (self.home / ".claude" / "projects").rglob("*.jsonl")
        lines = (line for path in transcripts for line in path.read_text().splitlines())
        return merged([*map(of_payload, self.payloads()), *map(of_line, self._objects(lines))])

    def _objects(self, texts: Iterator[str]) -> Iterator[dict[str, Any]]:
        for text in texts:
            try:
                found = json.loads(text)
            except ValueError:
                continue
            yield found
