"""Known names of the client (`known.toml`), and the difference to the names that a run has seen.

`python -m tests.real.known` prints the events and fields that hivepipe does not use, as a table.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.names import Names

FILE = Path(__file__).with_name("known.toml")
EVERY = "every"  # the group of a kind whose keys may appear in every group of that kind


@dataclass(frozen=True, slots=True)
class Group:
    """Known keys of one event, one type of transcript line or one tool.

    `elsewhere` has keys that hivepipe also reads, which other programs or older versions send.
    `ignored` is reason -> keys.
    """

    read: frozenset[str]
    elsewhere: frozenset[str]
    ignored: Mapping[str, frozenset[str]]

    @property
    def keys(self) -> frozenset[str]:
        return self.read.union(self.elsewhere, *self.ignored.values())


@dataclass(frozen=True, slots=True)
class New:
    """A group that is unknown, or unknown keys of a known group; a name without keys has none."""

    group: str
    keys: tuple[str, ...]
    is_group: bool

    def __str__(self) -> str:
        what = "new" if self.is_group else "new in it"
        return f"| {self.group} | {what} | {', '.join(self.keys)} |"


Known = dict[str, Group]


def known(text: str = "") -> Known:
    """Return the groups of `known.toml`, or of another TOML text, by name."""
    said: dict[str, dict[str, dict[str, Any]]] = tomllib.loads(text or FILE.read_text())
    return {
        f"{kind} {name}": _group(said, kind, name) for kind, named in said.items() for name in named
    }


def _group(said: Mapping[str, Mapping[str, Mapping[str, Any]]], kind: str, name: str) -> Group:
    own = said[kind][name]
    ignored = {reason: frozenset(keys) for reason, keys in own.get("ignored", {}).items()}
    read, elsewhere = (frozenset(own.get(key, ())) for key in ("read", "elsewhere"))
    return Group(read, elsewhere, ignored)


def news(seen: Names, declared: Iterable[str], names: Known) -> list[New]:
    """Return groups and keys that a run has seen, or the client declares, and that are unknown."""
    found: list[New] = []
    seen = {**{f"event {name}": set() for name in declared}, **seen}
    for group, keys in sorted(seen.items()):
        every = names.get(f"{group.partition(' ')[0]} {EVERY}")
        of_every = every.keys if every else frozenset()
        own = names.get(group)
        more = tuple(sorted(keys - of_every - (own.keys if own else frozenset())))
        if own is None or more:
            found.append(New(group, more, own is None))
    return found


def unseen(seen: Names, names: Known) -> dict[str, list[str]]:
    """Return the keys that hivepipe reads and that no group of this run contained."""
    missing = {
        group: sorted(names[group].read - keys) for group, keys in seen.items() if group in names
    }
    return {group: keys for group, keys in sorted(missing.items()) if keys}


def unused(names: Known) -> Iterator[str]:
    """Yield a table of the events and fields of events that hivepipe does not use."""
    yield "| event | what is not used | why |"
    yield "|--|--|--|"
    for group, said in names.items():
        kind, _, name = group.partition(" ")
        if kind != "event":
            continue
        for reason, keys in said.ignored.items():
            what = ", ".join(f"`{key}`" for key in sorted(keys))
            whole = "" if said.read else "the event" + (": " if keys else "")
            yield f"| {name} | {whole}{what} | {reason} |"


if __name__ == "__main__":
    print("\n".join(unused(known())))
