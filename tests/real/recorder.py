"""Hooks of the test's own, beside hivepipe's: they keep every payload, and print nothing.

They stand in the settings of the user, for each event that the client declares. A hook on
WorktreeCreate is left out: the client would let it make the worktree in git's place.
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
events_of = lru_cache(declared_events)  # it reads some hundred megabytes


class Recorder:
    """What a client tells its hooks in one home."""

    def __init__(self, root: Path, home: Path, client: Path) -> None:
        """Let every hook of this home keep its payload below `root`."""
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
        """Return what hooks were told; one that a killed client cut is left out."""
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
