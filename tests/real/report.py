"""The report of `make real` on a version: its figures and the names unknown to hivepipe."""

from collections.abc import Iterable, Iterator

from hivepipe.install.hook_entries import events_of
from tests.real.known import Known, known, news, unseen
from tests.real.tally import Total


def report(version: str, total: Total, declared: Iterable[str]) -> Iterator[str]:
    """Yield the lines of the report; `declared` has the events that the client's program lists."""
    yield f"Claude Code {version}: {total}"
    declared, names = tuple(declared), known()
    if not declared:
        yield "The list of events was not found in the program: those that were seen stand below."
    yield from _news(version, total, declared, names)
    installed = {event.name for event in events_of(tuple(map(int, version.split("."))))}
    if declared and (missing := sorted(installed.difference(declared))):
        yield f"Installed by hivepipe, unknown to {version}: {', '.join(missing)}"
    if unread := unseen(total.names, names):
        yield f"Read by hivepipe, and never seen with {version}:"
        yield from (f"  {group}: {', '.join(keys)}" for group, keys in unread.items())


def _news(version: str, total: Total, declared: Iterable[str], names: Known) -> Iterator[str]:
    found = news(total.names, declared, names)
    if not found:
        yield f"Nothing is new in {version}."
        return
    yield f"New in {version}, and unknown to hivepipe (tests/real/known.toml):"
    yield "| name | | fields or keys |"
    yield "|--|--|--|"
    yield from map(str, found)
