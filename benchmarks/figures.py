"""The figures of a benchmark and their bounds: print, store and check them."""

import argparse
import dataclasses
import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SLACK_IN_CI = 3  # factor for bounds in seconds or milliseconds, because CI machines are shared


@dataclass(frozen=True)
class Figure:
    """One figure. With `is_time` it is an absolute time, so its bound is wider in CI."""

    what: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    is_time: bool = False

    @property
    def bound(self) -> str:
        """Return the bound as text, or ""."""
        if self.at_most is not None:
            return f"at most {_short(self.at_most * self._slack)}"
        return f"at least {_short(self.at_least)}" if self.at_least is not None else ""

    @property
    def holds(self) -> bool:
        """Tell whether the value is within its bound."""
        if self.at_most is not None:
            return self.value <= self.at_most * self._slack
        return self.at_least is None or self.value >= self.at_least

    @property
    def _slack(self) -> int:
        return SLACK_IN_CI if self.is_time and os.environ.get("CI") else 1

    @property
    def shown(self) -> str:
        """Return the value with its unit."""
        return f"{_short(self.value)} {self.unit}"


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of all benchmarks."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--check", action="store_true", help="fail outside the bounds")
    made.add_argument("--json", help="also write the figures to this file")
    return made


def conclude(
    options: argparse.Namespace, figures: Sequence[Figure], details: dict[str, Any] | None = None
) -> None:
    """Print and store the figures. With `--check`, exit with 1 unless all are in bounds."""
    print(f"\n{machine()}")
    for figure in figures:
        said = "" if not figure.bound else "ok  " if figure.holds else "FAIL"
        print(f"{said:4} {figure.what}: {figure.shown}  {figure.bound}")
    if options.json:
        kept = {
            "machine": machine(),
            "figures": [dataclasses.asdict(figure) for figure in figures],
            "details": details or {},
        }
        Path(options.json).write_text(json.dumps(kept, indent=1))
    if options.check and not all(figure.holds for figure in figures):
        raise SystemExit("outside the bounds")


def machine() -> str:
    """Return a description of this machine and its load."""
    load = os.getloadavg()[0]
    name = f"{platform.system()} {platform.machine()}"
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
