"""Search in the archive, compared with grep over the same files: hits and times.

    python benchmarks/search.py [--messages 120000] [--check]

The words follow Zipf's law. Parts of words, punctuation and Chinese are searched too. grep runs
with the files in the page cache. The command takes turns with one that only starts (`search
--help`). `--check` fails unless both find the same number of lines for every text, and the median
of the command is at most 0.1 s of CPU above that of the empty one.
"""

import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import orjson
from figures import Figure, conclude, parser

from hivepipe.archive.search.index import SearchIndex
from hivepipe.archive.search.index_file import INDEX_FILE
from hivepipe.archive.search.query import Filters, terms_of

SEED = 20261121
CWD = "/shop"  # folder of a project that no longer exists
VOCABULARY = 30_000
WORDS_A_MESSAGE = 80
MESSAGES_A_SESSION = 2000
RANKS = (10, 30, 100, 300, 1000, 3000, 10_000, 20_000, 29_000)  # from common to rare
CHINESE = "技術文書更新日本語検索会話記録開始終了失敗成功確認"
ODD = ('"error:"', '"{:ok,"', "|>", "4.5", "更新", "日本語", "\N{ROCKET}", "live_view")
TURNS = 7


def write_archives(folder: Path, messages: int) -> list[str]:
    """Write the archives and return their words, the most common first."""
    rng = random.Random(SEED)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(4, 10))) for _ in range(VOCABULARY)]
    weights = [1 / (rank + 1) for rank in range(VOCABULARY)]
    for session in range(-(-messages // MESSAGES_A_SESSION)):
        with (folder / f"{_id(session)}.jsonl").open("wb") as file:
            count = min(MESSAGES_A_SESSION, messages - session * MESSAGES_A_SESSION)
            for number in range(count):
                text = " ".join(rng.choices(words, weights, k=WORDS_A_MESSAGE))
                text += f" {''.join(rng.choices(CHINESE, k=12))}"
                if not number % 50:
                    odd = rng.choice(ODD).strip('"')
                    text += f" phoenix_live_view{odd}"
                file.write(_line(session, number, text))
    return words


def _id(session: int) -> str:
    return f"{session:08d}-0000-4000-8000-000000000000"


def _line(session: int, number: int, text: str) -> bytes:
    line = {
        "type": "assistant",
        "sessionId": _id(session),
        "cwd": CWD,
        "timestamp": f"2026-{session % 12 + 1:02d}-{session % 28 + 1:02d}T"
        f"{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z",
        "message": {"role": "assistant", "content": [{"type": "text", "text": text}]},
    }
    return orjson.dumps(line) + b"\n"


class Machine:
    """A user with a project whose transcripts the sweep has archived."""

    def __init__(self, root: Path) -> None:
        """Set up a user whose home is `root`, an empty folder."""
        self.transcripts = root / ".claude" / "projects" / "-shop"
        self.transcripts.mkdir(parents=True)
        self.home = root / "kept"
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "XDG_STATE_HOME": str(root / "state"),
            "XDG_RUNTIME_DIR": str(root / "run"),
            "HIVEPIPE_HOME": str(self.home),
            "HIVEPIPE_AUTOSTART": "0",
        }
        (root / "run").mkdir(mode=0o700)
        self._root = root

    def command(self, *words: str) -> str:
        """Run a hivepipe command and return its output."""
        done = subprocess.run(
            [sys.executable, "-m", "hivepipe.cli.main", *words],
            cwd=self._root,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        return done.stdout


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the processor time of a command, because wall time depends on other processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(work: Callable[[], int]) -> tuple[int, float]:
    """Return the result of the work, and the shortest of three times in milliseconds."""
    found, spent = 0, []
    for _ in range(3):
        begun = time.perf_counter()
        found = work()
        spent.append((time.perf_counter() - begun) * 1000)
    return found, min(spent)


def grep(text: str, paths: list[Path]) -> int:
    """Return the number of lines that contain the text."""
    done = subprocess.run(
        ["grep", "-hF", text, *map(str, paths)], stdout=subprocess.PIPE, check=False
    )
    return done.stdout.count(b"\n")


def index_all(machine: Machine, index_file: Path) -> float:
    """Repeat a search until everything is indexed; return the seconds."""
    begun = time.perf_counter()
    while json.loads(machine.command("search", "--json", "zzzz"))["not_indexed_bytes"]:
        pass
    assert index_file.exists()
    return time.perf_counter() - begun


def beyond_an_empty_command(machine: Machine, words: Iterable[str]) -> tuple[float, float]:
    """Return how much longer a search takes than `search --help`, in ms: median and longest.

    They take turns, so that both have the same load on the machine.
    """
    found = []
    for word in words:
        more = []
        for _ in range(TURNS):
            empty = cpu_seconds(lambda: machine.command("search", "--help"))
            more.append(cpu_seconds(lambda: machine.command("search", word)) - empty)  # noqa: B023
        found.append(statistics.median(more) * 1000)
        print(f"  search {word}: {found[-1]:.0f} ms of CPU beyond an empty command")
    return statistics.median(found), max(found)


def main() -> None:
    """Print a line for each text, and the medians."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument("--messages", type=int, default=120_000)
    options = arguments_of.parse_args()
    with tempfile.TemporaryDirectory() as name:
        machine = Machine(Path(name))
        words = write_archives(machine.transcripts, options.messages)
        paths = sorted(machine.transcripts.glob("*.jsonl"))
        machine.command("archive", "follow", CWD)
        machine.command("archive", "sweep")
        index_file = machine.home / INDEX_FILE
        secs = index_all(machine, index_file)
        size = sum(path.stat().st_size for path in paths) / 1e6
        database = index_file.stat().st_size / 1e6
        print(f"{options.messages} messages, {size:.0f} MB")
        print(f"indexed in {secs:.1f} s, {database:.0f} MB: {options.messages / secs:.0f} a second")
        index = SearchIndex(index_file)
        differing, ours, greps = 0, [], []
        asked = [words[rank] for rank in RANKS]
        for text in (*asked, *(word[1:-1] for word in asked), *ODD):
            found, spent = timed(lambda text=text: _search(index, text))  # type: ignore[misc]
            plain = text.strip('"')
            wanted, beside = timed(lambda plain=plain: grep(plain, paths))  # type: ignore[misc]
            differing += found != wanted
            ours.append(spent)
            greps.append(beside)
            said = f"{found:7d} hits {spent:8.2f} ms, grep {wanted:7d} in {beside:8.1f} ms"
            print(f"  {said}  {text}")
        index.close()
        middle, worst = beyond_an_empty_command(machine, (*asked[::2], "更新", "live_view"))
    median, beside = statistics.median(ours), statistics.median(greps)
    what = f"search in {options.messages:,} messages"
    figures = [
        Figure(f"{what}, texts with other hits than grep", differing, f"of {len(ours)}", 0),
        Figure(f"{what}, median", median, "ms"),
        Figure(f"{what}, longest", max(ours), "ms"),
        Figure(f"{what}, above an empty command", middle, "ms of CPU", 100, is_time=True),
        Figure(f"{what}, above an empty command, longest", worst, "ms of CPU"),
        Figure("grep, compared with search", beside / median, "x as long"),
        Figure("search index, compared with the lines", database / size, "x as large"),
        Figure("search index", options.messages / secs, "messages a second"),
    ]
    conclude(options, figures)


def _search(index: SearchIndex, text: str) -> int:
    terms = terms_of(text)
    index.find(terms, Filters(), 20)
    return index.count(terms, Filters())


if __name__ == "__main__":
    main()
