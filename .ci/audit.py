"""Ask PyPI which of the pinned packages have known vulnerabilities; exit with 1 if one has.

A failed look-up (no network, a mirror without the JSON interface) is no failure, because machines
without a network run the tests too. The output says how many packages were not looked up.
"""

import json
import subprocess
import sys
from pathlib import Path

PINNED = Path(__file__).resolve().parent.parent / "constraints.txt"
PATIENCE_SECS = 120
COMMAND = "-m pip_audit --no-deps --disable-pip --progress-spinner off --timeout 5 -f json -r"


def asked() -> list[dict[str, object]]:
    """Return pip-audit's result for each package, or [] if it gave none."""
    command = [sys.executable, *COMMAND.split(), str(PINNED)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_SECS, check=False
        )
        return list(json.loads(done.stdout)["dependencies"])
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return []


def said(answered: int, pinned: int, bad: int) -> str:
    """Return the summary: packages looked up, vulnerabilities, packages not looked up."""
    if not answered:
        return f"NOT LOOKED UP: no connection; nothing is known of {pinned} pinned packages"
    found = f"{answered} of {pinned} pinned packages looked up, {bad} vulnerabilities"
    left = pinned - answered
    return f"{found}; {left} NOT LOOKED UP" if left else found


def main() -> int:
    """Print a line for each vulnerability, and the summary."""
    pinned = sum(1 for line in PINNED.read_text().splitlines() if line.strip())
    answered = [package for package in asked() if "skip_reason" not in package]
    bad = [(package, vuln) for package in answered for vuln in package["vulns"]]  # type: ignore[attr-defined]
    for package, vuln in bad:
        fixed = ", ".join(vuln["fix_versions"]) or "no version yet"
        print(f"{package['name']} {package['version']}: {vuln['id']}, mended in {fixed}")
    print(f"audit: {said(len(answered), pinned, len(bad))}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
