"""Claude Code's names that are declared equal those that the code reads. New ones are reported."""

import json
import re
from pathlib import Path
from typing import Any

from hivepipe.events.claude_code import KINDS
from hivepipe.events.other_events import OTHER_KINDS
from hivepipe.install.hook_entries import EVENTS
from tests.conftest import ROOT
from tests.real.known import EVERY, known, news, unseen, unused
from tests.real.names import declared_events, merged, of_line, of_payload, of_request

KNOWN = known()
READERS = KINDS | OTHER_KINDS
SOURCE = "\n".join(path.read_text() for path in ROOT.glob("hivepipe/**/*.py"))
OF_THE_PREDECESSOR = {"task_id": "a", "outcome": "failed"}  # with these the parser reads more keys


class RecordingFields(dict[str, object]):
    """Fields that record which keys are read."""

    def __init__(self, fields: dict[str, object], names: set[str]) -> None:
        super().__init__(fields)
        self.names = names

    def get(self, key: str, default: Any = None) -> Any:
        self.names.add(key)
        return super().get(key, default)


def keys_read(name: str) -> set[str]:
    """Return the keys that the parser reads."""
    names = {"hook_event_name"}  # `parse_event` reads it
    for fields in ({}, OF_THE_PREDECESSOR):
        READERS[name](name, RecordingFields(fields, names), b"", [])
    return names


def test_exactly_the_events_that_are_read_have_a_hook() -> None:
    used = {group.partition(" ")[2] for group, declared in KNOWN.items()
            if group.startswith("event ") and not is_unused(group)}  # fmt: skip
    assert used - {EVERY} == {event.name for event in EVENTS} == set(READERS)


def is_unused(group: str) -> bool:
    return not KNOWN[group].read and bool(KNOWN[group].ignored)


def test_the_declared_keys_of_an_event_are_those_that_the_parser_reads() -> None:
    every = KNOWN[f"event {EVERY}"]
    for name in READERS:
        own = KNOWN[f"event {name}"]
        read = every.read | own.read | own.elsewhere
        undeclared = (keys_read(name) & (every.keys | own.keys)) - read
        assert undeclared == set(), f"add it to `read` of {name} in tests/real/known.toml"
        unread = read - keys_read(name)
        assert unread == set(), f"{name} in tests/real/known.toml"


def test_the_declared_keys_of_lines_occur_in_the_code() -> None:
    read = {
        key
        for group, declared in KNOWN.items()
        if not group.startswith("event ")
        for key in declared.read
    }
    assert [key for key in sorted(read) if f'"{key}"' not in SOURCE] == []


def test_no_name_is_declared_twice() -> None:
    for group, declared in KNOWN.items():
        parts = [declared.read, declared.elsewhere, *declared.ignored.values()]
        assert sum(map(len, parts)) == len(declared.keys), group


def test_a_name_removed_from_the_known_ones_is_reported() -> None:
    line = {"type": "assistant", "requestId": "r", "message": {"role": "assistant", "usage": {}}}
    payload = {"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Read"}
    tools = {"tools": [{"name": "Bash", "input_schema": {"properties": {"command": {}}}}]}
    seen = merged([of_line(line), of_payload(payload), of_request(tools)])
    assert news(seen, ["SessionEnd"], KNOWN) == []
    fewer = (
        "[event.every]\nread = ['session_id', 'hook_event_name']\n[event.PreToolUse]\n[tool.Bash]\n"
    )
    fewer += "[line.every]\nread = ['type', 'message']\n[line.assistant]\n[message.usage]\n"
    found = {each.group: (each.keys, each.is_group) for each in news(seen, ["SessionEnd"],
                                                                     known(fewer))}  # fmt: skip
    assert found == {
        "event SessionEnd": ((), True),
        "event PreToolUse": (("tool_name",), False),
        "line assistant": (("requestId",), False),
        "message assistant": (("role", "usage"), True),
        "tool Bash": (("command",), False),
        "tool Read": ((), True),
    }


def test_names_that_are_read_but_never_seen_are_reported() -> None:
    seen = {"event PreCompact": {"hook_event_name"}, "event Stop": {"effort", "background_tasks"}}
    assert unseen(seen, KNOWN) == {"event PreCompact": ["trigger"]}


def test_the_longest_list_of_a_program_is_that_of_its_events(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    some = ["PreToolUse", "SessionStart", "Stop", "SessionEnd", "Setup"]
    others = ["Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta", "Theta"]
    lists = [others, [*some, "Newborn"], some]
    text = b"\0".join(json.dumps(names, separators=(",", ":")).encode() for names in lists)
    program.write_bytes(b"\xff" * ((1 << 24) - 30) + text)  # across the border of two reads
    assert declared_events(program) == (*some, "Newborn")
    program.write_bytes(b"nothing")
    assert declared_events(program) == ()


def test_unused_names_are_listed_with_reasons() -> None:
    head, line, *rows = unused(KNOWN)
    assert (head, line) == ("| event | what is not used | why |", "|--|--|--|")
    assert all(re.fullmatch(r"\| \w+ \| .*`\w+`.* \| .+ \|", row) for row in rows)
