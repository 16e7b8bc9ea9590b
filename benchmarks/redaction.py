"""What the redaction finds, what it takes by mistake, and how fast it is, side by side in one run.

    python benchmarks/redaction.py [--mb 100] [--check] [--seed 1]

Recall: published forms of tokens in six wrappings. False hits: Python's standard library and the
sample transcripts; every hit is printed but those that somebody has read and found right
(redaction_reviewed.txt). Speed: the same bytes through us, a plain loop over the same rules, and
detect-secrets (and kingfisher, where `pip install kingfisher-bin` was run), in MB a second of
processor time. Size: speed and memory over `--mb` megabytes. Hostile lines of 5 MB. With `--check`
it fails unless all of it is as promised.
"""

import contextlib
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings
from figures import Figure, conclude, parser

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the labelled lines are the tests' own

from hivepipe.redaction import built_in, redact_line  # noqa: E402
from hivepipe.redaction.rules import RULES  # noqa: E402
from tests.redaction_corpus import Labelled, positives, survives, transcript_line  # noqa: E402

OF_EACH_KIND = 20
LEAST_RECALL = 0.99
MOST_FALSE_A_MB = 1.0
LEAST_OVER_NAIVE = 10
MOST_HOSTILE_SECS = 5.0
MOST_GROWTH_BYTES = 16 << 20
REVIEWED = Path(__file__).with_name("redaction_reviewed.txt")


# ---- recall


def recall(seed: int) -> float:
    """Print how many labelled secrets go, with us and with others."""
    labelled = list(positives(seed, OF_EACH_KIND))
    missed = [item for item in labelled if survives(item, redact_line(item.line)[0])]
    kinds = len({item.kind for item in labelled})
    print(f"\nRecall: {len(labelled)} secrets of {kinds} kinds in 6 wrappings")
    shown = 1 - len(missed) / len(labelled)
    print(f"  hivepipe         {shown:7.2%}")
    for (kind, wrapping), number in Counter((i.kind, i.wrapping) for i in missed).items():
        print(f"    missed: {kind} in {wrapping}: {number}")
    print(f"  detect-secrets   {found_by_detect_secrets(labelled) / len(labelled):7.2%}")
    if kingfisher():
        print(f"  kingfisher       {found_by_kingfisher(labelled) / len(labelled):7.2%}")
    return shown


def found_by_detect_secrets(labelled: list[Labelled]) -> int:
    """Count the lines in which it finds a part of the secret."""
    found = 0
    with default_settings():
        for item in labelled:
            values = [secret.secret_value or "" for secret in scan_line(item.line.decode())]
            found += any(item.secret[5:15] in value for value in values)
    return found


def found_by_kingfisher(labelled: list[Labelled]) -> int:
    """Count the lines in which it finds anything: each holds one secret."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines.jsonl")
        file.write_bytes(b"".join(item.line for item in labelled))
        report = Path(folder, "report.json")
        run_kingfisher(file, report)
        findings = json.loads(report.read_text())["findings"]
    return len({finding["finding"]["line"] for finding in findings})


# ---- false hits


def negatives() -> Iterator[tuple[str, bytes]]:
    """Yield the standard library, a line for each file, and the sample transcripts."""
    library = Path(sysconfig.get_paths()["stdlib"])
    chance = random.Random(0)
    for path in sorted(library.rglob("*.py")):
        if "site-packages" not in path.parts:
            text = path.read_text(encoding="utf-8", errors="replace")
            yield str(path.relative_to(library)), transcript_line(text, chance)
    for path in sorted((ROOT / "tests" / "transcripts").rglob("*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            yield str(path.relative_to(ROOT)), line


def false_hits() -> float:
    """Print each hit that is no secret; return how many there are in a megabyte."""
    reviewed = {line.split()[0] for line in REVIEWED.read_text().splitlines() if line[:1] != "#"}
    size = right = 0
    false = []
    for name, line in negatives():
        size += len(line)
        for edit in built_in().edits(line):
            if fingerprint(line[edit.start : edit.end]) in reviewed:
                right += 1
            else:
                false.append((edit.rule, name, line[max(0, edit.start - 30) : edit.end + 10]))
    print(f"\nFalse hits: {size / 1e6:.0f} MB of standard library and sample transcripts")
    for rule, name, around in false:
        print(f"  {rule:<14} {name}: {around.decode('utf-8', 'replace')!r}")
    rate = len(false) / (size / 1e6)
    print(
        f"  {len(false)} false, {rate:.2f} a MB ({right} right ones: addresses, literal passwords)"
    )
    return rate


def fingerprint(secret: bytes) -> str:
    """Name a hit, however it is spelled, without keeping it."""
    with contextlib.suppress(ValueError):
        secret = json.loads(b'"%s"' % secret).encode("utf-8", "replace")
    return hashlib.sha256(secret).hexdigest()[:16]


# ---- speed


def session(seed: int, size: int) -> Iterator[bytes]:
    """Yield a session's lines: code read and written, answers, a secret in one of a hundred."""
    chance = random.Random(seed)
    library = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    secrets = list(positives(seed, 1))
    while size > 0:
        lines = chance.choice(library).read_text(encoding="utf-8").splitlines()
        start = chance.randrange(len(lines))
        part = lines[start : start + chance.choice((1, 5, 20, 60, 200))]
        numbered = (f"{n:>6}\u2192{text}" for n, text in enumerate(part, start + 1))
        text = "\n".join(numbered if chance.random() < 0.5 else part)
        line = transcript_line(text, chance)
        if chance.random() < 0.01:
            line = chance.choice(secrets).line
        yield line
        size -= len(line)


def speed(seed: int) -> float:
    """Print MB a second of each on the same lines; return ours over the plain loop's."""
    lines = list(session(seed, 20_000_000))
    few = lines[: len(lines) // 40]
    print(f"\nSpeed: {megabytes(lines):.0f} MB, {len(lines)} lines; processor time")
    naive = naive_redactor()
    ours = rate(lines, redact_line)
    loop = rate(few, naive)
    with default_settings():
        other = rate(few, lambda line: list(scan_line(line.decode())))
    for name, value in (("hivepipe", ours), ("plain loop", loop), ("detect-secrets", other)):
        print(f"  {name:<16} {value:8.2f} MB/s   {ours / value:6.1f} x")
    if kingfisher():
        value = rate_of_kingfisher(lines)
        print(f"  {'kingfisher':<16} {value:8.2f} MB/s   {ours / value:6.1f} x")
    return ours / loop


def naive_redactor() -> Callable[[bytes], bytes]:
    """Return what everybody writes first: parse, every pattern over every string, dump."""
    patterns = [
        (re.compile(rule.pattern), re.compile(rule.unless or "(?!)"), rule.replacement)
        for rule in RULES
    ]

    def clean(text: str) -> str:
        for pattern, unless, replacement in patterns:

            def instead(found: re.Match[str], unless: Any = unless, new: str = replacement) -> str:
                group = found.lastindex or 0
                secret = found[group]
                if (found.re.groups and not group) or unless.fullmatch(secret):
                    return found[0]
                start, end = (at - found.start() for at in found.span(group))
                return found[0][:start] + new + found[0][end:]

            text = pattern.sub(instead, text)
        return text

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            return {clean(key): walk(item) for key, item in value.items()}
        return value

    return lambda line: json.dumps(walk(json.loads(line))).encode()


def rate(lines: list[bytes], work: Callable[[bytes], object]) -> float:
    """Return MB per second of this process' time."""
    work(lines[0])
    begun = time.process_time()
    for line in lines:
        work(line)
    return megabytes(lines) / (time.process_time() - begun)


def megabytes(lines: list[bytes]) -> float:
    """Return the size of the lines."""
    return sum(map(len, lines)) / 1e6


def kingfisher() -> str | None:
    """Return the program, if it is installed."""
    return shutil.which("kingfisher", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def run_kingfisher(file: Path, report: Path) -> None:
    """Scan a file with one thread and no network; if it finds something it does not exit with 0."""
    command = [str(kingfisher()), "--no-update-check", "-q", "scan", "--no-validate", "-j", "1"]
    options = ["--no-base64", "--no-dedup", "-f", "json", "-o", str(report), str(file)]
    subprocess.run([*command, *options], check=False, stdout=subprocess.DEVNULL)


def rate_of_kingfisher(lines: list[bytes]) -> float:
    """Return its MB per second, its start taken off; what it compiles it keeps in a cache."""
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines.jsonl")
        for content in ([], [], lines):  # the first run fills the cache
            file.write_bytes(b"".join(content))
            before = os.times()
            run_kingfisher(file, Path(folder, "report.json"))
            after = os.times()
            spent.append(sum(after[2:4]) - sum(before[2:4]))
    return megabytes(lines) / (spent[2] - spent[1])


# ---- size


def flat(seed: int, megabytes_in_all: int) -> tuple[float, int]:
    """Stream a big file; return the speed of its end over that of its beginning, and the growth."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "big.jsonl")
        block = b"".join(session(seed, 10_000_000))
        with file.open("wb") as out:
            for _ in range(max(2, megabytes_in_all * 1_000_000 // len(block))):
                out.write(block)
        process = psutil.Process()
        marks = [(0, time.process_time(), process.memory_info().rss)]
        done = 0
        with file.open("rb") as source:
            for line, _ in built_in().redact_stream(source):
                done += len(line)
                if done >= len(marks) * file.stat().st_size / 10:
                    marks.append((done, time.process_time(), process.memory_info().rss))
        marks.append((done, time.process_time(), process.memory_info().rss))
        print(f"\nSize: {file.stat().st_size / 1e6:.0f} MB in one stream")
    rates = [
        (later[0] - sooner[0]) / 1e6 / max(later[1] - sooner[1], 1e-9)
        for sooner, later in itertools.pairwise(marks[:-1])
    ]
    growth = marks[-1][2] - marks[1][2]
    print(f"  MB/s by tenths: {', '.join(f'{value:.0f}' for value in rates)}")
    print(
        f"  memory after the first tenth {marks[1][2] >> 20} MB, at the end {marks[-1][2] >> 20} MB"
    )
    half = len(rates) // 2
    return sum(rates[half:]) / sum(rates[:half]), growth


# ---- hostile lines


def hostile_lines(seed: int, size: int) -> Iterator[tuple[str, bytes]]:
    """Yield lines of this size that are made to be slow."""
    chance = random.Random(seed)

    def filled(unit: str) -> str:
        return (unit * (size // len(unit) + 1))[: size // len(unit) * len(unit)]

    words = ("sk-", "ghp_", "password", "=", "token", ":", "'", "\\", "eyJ", ".", "@", "/", "a1B2")
    yield (
        "random beginnings",
        json.dumps("".join(chance.choice(words) for _ in range(size // 4))).encode(),
    )
    for unit in (
        "ana@shop.io ",
        "a@b.",
        "password=hunter2 ",
        'password="',
        "/a ",
        "sk-A1",
        "-----BEGIN RSA PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n",
        "http://a:b@",
        "curl -u ",
        "token=a1B2c3D4e5F6 ",
    ):
        yield f"of {unit!r}", json.dumps(filled(unit)).encode()
    yield "escapes", b'["%s"]' % filled("\\u0073").encode()
    yield "escaped escapes", b'["%s"]' % filled("\\\\u0073").encode()
    yield "members", b"[%s1]" % filled('{"password":"hunter2"},').encode()
    yield "strings", b'[%s"ana@shop.io"]' % filled('"a",').encode()
    image = '{"source":{"type":"base64","data":""}},'
    yield "images", b'[%s"ana@shop.io"]' % filled(image).encode()
    yield "brackets", b"%s" % (filled("[").encode() + b'"ana@shop.io"')
    yield "an open string", b'{"a":"%s' % filled('ana@shop.io\\"').encode()


def hostile(seed: int, size: int) -> float:
    """Print what each costs; return the worst, in seconds."""
    print(f"\nHostile lines of {size / 1e6:.1f} MB, processor time")
    worst = 0.0
    for name, line in hostile_lines(seed, size):
        begun = time.process_time()
        _, rules = redact_line(line)
        spent = time.process_time() - begun
        worst = max(worst, spent)
        print(f"  {spent:5.2f} s  {name}: {dict(Counter(rules)) or 'nothing'}")
    return worst


def main() -> None:
    """Measure, print, judge."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument("--mb", type=int, default=100)
    arguments_of.add_argument("--hostile-mb", type=float, default=5.0, help="each hostile line (5)")
    arguments_of.add_argument("--seed", type=int, default=1)
    options = arguments_of.parse_args()
    found = recall(options.seed)
    false = false_hits()
    ratio = speed(options.seed)
    evenness, growth = flat(options.seed, options.mb)
    worst = hostile(options.seed, int(options.hostile_mb * 1e6))
    size = f"redaction over {options.mb} MB"
    figures = [
        Figure("redaction, recall", found * 100, "%", at_least=LEAST_RECALL * 100),
        Figure("redaction, false hits", false, "a MB", MOST_FALSE_A_MB),
        Figure("redaction", ratio, "x the plain loop", at_least=LEAST_OVER_NAIVE),
        Figure(f"{size}, its end", evenness, "x the speed of its beginning", at_least=0.8),
        Figure(f"{size}, memory grew by", growth / 1e6, "MB", MOST_GROWTH_BYTES / 1e6),
        Figure("redaction, worst hostile line", worst, "s", MOST_HOSTILE_SECS, is_time=True),
    ]
    conclude(options, figures)


if __name__ == "__main__":
    main()
