"""What hooks were told: kept by a program that stands before the hook and becomes it."""

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.person import Person

# Settings name it in place of the hook: the payload is a file before the hook starts. A hook
# ignores these signals once its Python has started. This program ignores them from its beginning:
# what it kept must not be lost in the milliseconds between.
KEEPING = """#!/bin/sh
trap "" HUP INT TERM
told=$(mktemp {folder}/XXXXXX) && cat > "$told" && exec {hook} "$@" < "$told"
"""
HOOK = re.compile(r'/[^" ]+/hivepipe/hooks/\w+/hook\b')


@dataclass(frozen=True)
class Told:
    """Every payload for which a hook was started."""

    folder: Path

    @property
    def number(self) -> int:
        """How many there are, also torn ones."""
        return len([*self.folder.iterdir()])

    def payloads(self) -> list[dict[str, Any]]:
        """Return those that are whole, in their order; a killed client may tear its last."""
        found = []
        for path in sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
            try:
                found.append(json.loads(path.read_text()))
            except ValueError:
                continue
        return found

    def by_session(self, event: str, field: str) -> dict[str, set[str]]:
        """Return what a field said in all events of a name, by session."""
        found: dict[str, set[str]] = defaultdict(set)
        for payload in self.payloads():
            if payload["hook_event_name"] == event:
                found[payload["session_id"]].add(payload[field])
        return dict(found)


def keep_what_is_told(person: Person) -> Told:
    """Let every hook keep its payload before it starts."""
    folder = person.root / "told"
    folder.mkdir()
    settings = person.project / ".claude" / "settings.local.json"
    text = settings.read_text()
    (hook,) = {*HOOK.findall(text)}
    keeping = person.root / "keeping"
    keeping.write_text(KEEPING.format(hook=hook, folder=folder))
    keeping.chmod(0o755)
    settings.write_text(HOOK.sub(str(keeping), text))
    return Told(folder)
