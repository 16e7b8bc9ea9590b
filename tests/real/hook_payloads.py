"""Payloads of all started hooks, stored by a wrapper script that then executes the hook."""

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.person import Person

# The settings name this script in place of the hook, so the payload is stored before the hook
# starts. The hook ignores these signals once its Python has started. The script ignores them from
# its start, so that no payload is lost between.
WRAPPER = """#!/bin/sh
trap "" HUP INT TERM
payload=$(mktemp {folder}/XXXXXX) && cat > "$payload" && exec {hook} "$@" < "$payload"
"""
HOOK = re.compile(r'/[^" ]+/hivepipe/hooks/\w+/hook\b')


@dataclass(frozen=True)
class HookPayloads:
    """Payloads of all started hooks."""

    folder: Path

    @property
    def count(self) -> int:
        """Number of payloads, including incomplete ones."""
        return len([*self.folder.iterdir()])

    def complete(self) -> list[dict[str, Any]]:
        """Return the complete payloads in order; a killed client may leave an incomplete one."""
        found = []
        for path in sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
            try:
                found.append(json.loads(path.read_text()))
            except ValueError:
                continue
        return found

    def by_session(self, event: str, field: str) -> dict[str, set[str]]:
        """Return the values of a field in all events of one name, by session."""
        found: dict[str, set[str]] = defaultdict(set)
        for payload in self.complete():
            if payload["hook_event_name"] == event:
                found[payload["session_id"]].add(payload[field])
        return dict(found)


def store_hook_payloads(person: Person) -> HookPayloads:
    """Replace every hook by a wrapper that stores the payload first."""
    folder = person.root / "payloads-before-hooks"
    folder.mkdir()
    settings = person.project / ".claude" / "settings.local.json"
    text = settings.read_text()
    (hook,) = {*HOOK.findall(text)}
    wrapper = person.root / "wrapper"
    wrapper.write_text(WRAPPER.format(hook=hook, folder=folder))
    wrapper.chmod(0o755)
    settings.write_text(HOOK.sub(str(wrapper), text))
    return HookPayloads(folder)
