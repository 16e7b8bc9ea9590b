"""The audit of dependencies reports how many packages it has looked up."""

import runpy
import subprocess
import sys
from pathlib import Path

AUDIT = Path(__file__).resolve().parents[2] / ".ci" / "audit.py"


def test_the_audit_without_a_connection_looks_nothing_up() -> None:
    nowhere = dict.fromkeys(("https_proxy", "http_proxy"), "http://127.0.0.1:9")
    done = subprocess.run(
        [sys.executable, AUDIT], env=nowhere, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0
    assert done.stdout.startswith("audit: NOT LOOKED UP: no connection")
    assert "0 vulnerabilities" not in done.stdout


def test_a_partial_audit_reports_what_was_looked_up() -> None:
    said = runpy.run_path(str(AUDIT))["said"]
    assert said(3, 3, 0) == "3 of 3 pinned packages looked up, 0 vulnerabilities"
    assert said(2, 3, 1) == "2 of 3 pinned packages looked up, 1 vulnerabilities; 1 NOT LOOKED UP"
