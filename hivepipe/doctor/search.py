"""Check whether all archived lines can be found."""

from collections.abc import Iterator
from pathlib import Path

from hivepipe.archive.search.index_file import INDEX_FILE, skipped_lines
from hivepipe.doctor.facts import Facts, Finding
from hivepipe.text.plurals import counted

NAMED = 5


def skipped(facts: Facts) -> Iterator[Finding]:
    """Find lines that are not in the search index, by archive and byte offset."""
    some, total = skipped_lines(Path(facts.place.home, INDEX_FILE), NAMED)
    if not some:
        return
    named = "; ".join(f"{each.key} at byte {each.offset}: {each.reason}" for each in some)
    more = f"; and {total - len(some)} more" if total > len(some) else ""
    what = "is archived but not indexed" if total == 1 else "are archived but not indexed"
    yield Finding(f"{counted(total, 'line')} {what} ({named}{more})", is_note=True)
