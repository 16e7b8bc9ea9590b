"""Claude Code's names that are declared equal those that the code reads. New ones are reported."""

from typing import Any

from hivepipe.events.claude_code import KINDS
from hivepipe.events.other_events import OTHER_KINDS
from hivepipe.install.hook_entries import EVENTS
from tests.conftest import ROOT
from tests.real.known import EVERY, known

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
        twice = {name for name in declared.keys if sum(name in part for part in parts) > 1}
        assert twice == set(), f"keep one line of it in [{group}] of tests/real/known.toml"
