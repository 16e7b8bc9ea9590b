"""Searching the archive, beside grep over the same files: hits, and how long each takes.

    python benchmarks/search.py [--messages 200000] [--check]

The words follow Zipf's law, as words do; grep runs with the files in the page cache. `--check`
fails unless both find the same number of lines for every word, and the median of the index is
at most a tenth of grep's.
"""

import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import orjson
from figures import Figure, conclude, parser

from hivepipe.search.index import Archived, SearchIndex
from hivepipe.search.query import Filters

SEED = 20261121
VOCABULARY = 30_000
WORDS_A_MESSAGE = 80
MESSAGES_A_SESSION = 2000
RANKS = (10, 30, 100, 300, 1000, 3000, 10_000, 20_000, 29_000)  # from common to rare


def write_archives(folder: Path, messages: int) -> list[str]:
    """Write the archives and return the words, the most common first."""
    rng = random.Random(SEED)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(4, 10))) for _ in range(VOCABULARY)]
    weights = [1 / (rank + 1) for rank in range(VOCABULARY)]
    for session in range(-(-messages // MESSAGES_A_SESSION)):
        with (folder / f"{session:05d}.jsonl").open("wb") as file:
            count = min(MESSAGES_A_SESSION, messages - session * MESSAGES_A_SESSION)
            for number in range(count):
                text = " ".join(rng.choices(words, weights, k=WORDS_A_MESSAGE))
                file.write(_line(session, number, text))
    return words


def _line(session: int, number: int, text: str) -> bytes:
    line = {
        "type": "assistant",
        "sessionId": f"{session:05d}",
        "timestamp": f"2026-{session % 12 + 1:02d}-{session % 28 + 1:02d}T"
        f"{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
        "message": {"role": "assistant", "content": [{"type": "text", "text": text}]},
    }
    return orjson.dumps(line) + b"\n"


def archived(path: Path) -> Archived:
    """Return the file as the index sees it."""

    def lines_from(offset: int) -> Iterator[tuple[int, bytes]]:
        with path.open("rb") as file:
            file.seek(offset)
            for raw in file:
                yield offset, raw
                offset += len(raw)

    size = path.stat().st_size
    return Archived(path.stem, path.stem, "", "/shop", size, lines_from)


def build(index: SearchIndex, paths: Iterable[Path]) -> float:
    """Index all files; return how many seconds that took."""
    begun = time.perf_counter()
    for path in paths:
        index.catch_up(archived(path))
    return time.perf_counter() - begun


def timed(work: Callable[[], int]) -> tuple[int, float]:
    """Return what the work found, and the best of three times in milliseconds."""
    found, spent = 0, []
    for _ in range(3):
        begun = time.perf_counter()
        found = work()
        spent.append((time.perf_counter() - begun) * 1000)
    return found, min(spent)


def grep(word: str, paths: list[Path]) -> int:
    """Count the lines that hold the word."""
    done = subprocess.run(
        ["grep", "-hwF", word, *map(str, paths)], stdout=subprocess.PIPE, check=False
    )
    return done.stdout.count(b"\n")


def main() -> None:
    """Print a line per word, and the medians."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument("--messages", type=int, default=200_000)
    options = arguments_of.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        words = write_archives(folder, options.messages)
        paths = sorted(folder.glob("*.jsonl"))
        index = SearchIndex(folder / "search.db")
        secs = build(index, paths)
        size = sum(path.stat().st_size for path in paths) / 1e6
        database = (folder / "search.db").stat().st_size / 1e6
        print(f"{options.messages} messages, {size:.0f} MB")
        print(f"indexed in {secs:.1f} s, {database:.0f} MB: {options.messages / secs:.0f} a second")
        differing, ours, greps = 0, [], []
        for word in (words[rank] for rank in RANKS):
            found, spent = timed(lambda asked=word: _search(index, asked))  # type: ignore[misc]
            wanted, beside = timed(lambda asked=word: grep(asked, paths))  # type: ignore[misc]
            differing += found != wanted
            ours.append(spent)
            greps.append(beside)
            print(f"  {found:7d} hits {spent:8.2f} ms, grep {wanted:7d} in {beside:8.1f} ms")
    median, beside = statistics.median(ours), statistics.median(greps)
    what = f"search in {options.messages:,} messages"
    figures = [
        Figure(f"{what}, words with other hits than grep", differing, f"of {len(ours)}", 0),
        Figure(f"{what}, median", median, "ms"),
        Figure("grep, beside search", beside / median, "x as long", at_least=10),
    ]
    conclude(options, figures)


def _search(index: SearchIndex, word: str) -> int:
    index.find(word, Filters(), 20)
    return index.count(word, Filters())


if __name__ == "__main__":
    main()
