"""Run benchmarks, one after the other, and print one list of all figures.

python benchmarks/run_all.py                 all at full size; fails outside the bounds
python benchmarks/run_all.py hook_cost web   these again; the others keep their last results
python benchmarks/run_all.py --small         small, only to test that each one runs
python benchmarks/run_all.py --page          also README.md here and docs/benchmarks.png; needs
                                             matplotlib
"""

import argparse
import json
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import felt_cost
from figures import Figure, machine

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER.parent / ".benchmarks"

# Benchmark -> its arguments at full size, and when small
SIZES = {
    "hook_cost": ("--runs 40", "--runs 1"),
    "status_line": ("", "--runs 3"),
    "felt_cost": ("", "--rounds 1 --calls 5"),
    "drain": ("--memory 300000", "--jobs 1500 --rounds 1"),
    "latency": ("", "--secs 3"),
    "stack": ("", "--rounds 1 --idle-secs 3"),
    "archive": ("", "--mb 10"),
    "redaction": ("--mb 500", "--mb 10 --hostile-mb 0.5 --text-mb 5 --offline"),
    "summaries": ("", "--sessions 4"),
    "search": ("", "--messages 5000"),
    "growth": ("", "--events 1000 --runs 3"),
    "team": ("", "--rows 1000 --rounds 1 --homes 4 --secs 4 --jobs 300 --hooks 50"),
    "web": ("", "--events 2000 --archives-mb 1 --rounds 3 --idle-secs 3 --turns 2"),
}

Found = dict[str, dict[str, Any]]


def run(names: list[str], kept: Path, is_small: bool) -> None:
    """Run each benchmark in a separate process, which writes its results into the folder."""
    kept.mkdir(parents=True, exist_ok=True)
    for name in names:
        print(f"\n==== {name}", flush=True)
        report = str(kept / f"{name}.json")
        command = [sys.executable, str(FOLDER / f"{name}.py"), "--json", report]
        subprocess.run([*command, *SIZES[name][is_small].split()], check=True)


def results(kept: Path) -> Found:
    """Return the last results of each benchmark."""
    paths = {name: kept / f"{name}.json" for name in SIZES}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}


def figures_of(found: Found) -> list[Figure]:
    """Return the figures of all benchmarks."""
    return [Figure(**said) for kept in found.values() for said in kept["figures"]]


def listed(figures: list[Figure]) -> str:
    """Return the figures as a list in Markdown."""
    return "\n".join(f"- {figure.what}: {figure.shown}{judged(figure)}" for figure in figures)


def judged(figure: Figure) -> str:
    """Return the bound of a figure in parentheses, with a remark if it is missed."""
    if not figure.bound:
        return ""
    return f" ({figure.bound})" if figure.holds else f" ({figure.bound}: **missed**)"


def felt(details: dict[str, Any]) -> str:
    """Return the section about the cost of hooks in the real client."""
    if not details:
        return "Not measured: no Claude Code was fetched (`make real` does)."
    turn = details["forms"]["none"]["the turn"]
    said = f"A turn of {details['calls']} Read calls takes {turn / 1000:.2f} s without hooks."
    return f"{said}\n\n{felt_cost.table(details['forms'])}"


def main() -> None:
    """Run the benchmarks, print the figures, and check their bounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="run small, without checking bounds")
    parser.add_argument("--page", action="store_true", help="write README.md and its picture")
    parser.add_argument("names", nargs="*", metavar="NAME", help="run these instead of all")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SIZES):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    kept = RESULTS / ("small" if options.small else "full")
    names = options.names or list(SIZES)
    if options.page and (missing := set(SIZES) - set(names) - set(results(kept))):
        parser.error(f"the page also needs: {', '.join(sorted(missing))}")
    run(names, kept, options.small)
    found = results(kept)
    figures = figures_of({name: found[name] for name in names})
    print(f"\n{listed(figures)}")
    if options.page:
        write_page(found)
    if not options.small and not all(figure.holds for figure in figures):
        raise SystemExit("outside the bounds")


def write_page(found: Found) -> None:
    """Write the page and the picture."""
    from picture import draw  # noqa: PLC0415  # needs matplotlib, which nothing else does

    draw(FOLDER.parent / "docs" / "benchmarks.png", found)
    loads = ", ".join(
        f"{name} {kept['machine'].rpartition(' ')[2]}" for name, kept in found.items()
    )
    day = datetime.now(UTC).date().isoformat()
    said = (FOLDER / "page.md").read_text()
    where = machine().rpartition(", ")[0]
    measured = textwrap.fill(f"Measured on {day}: {where}. Load average after each: {loads}.", 100)
    said = said.replace("{measured}", measured).replace("{figures}", listed(figures_of(found)))
    said = said.replace("{felt}", felt(found["felt_cost"]["details"]))
    (FOLDER / "README.md").write_text(said)


if __name__ == "__main__":
    main()
