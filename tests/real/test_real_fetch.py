"""Without npm the suite is skipped within seconds, with one line for each version."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.real import fetch

ROOT = Path(__file__).resolve().parents[2]


def test_an_unreachable_registry_skips_the_suite_within_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tests.real.run", "--short", "newest", "oldest"],
        cwd=ROOT,
        env={**os.environ, **nowhere(tmp_path, 9)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    newest, oldest = done.stdout.splitlines()
    assert newest.startswith(f"Claude Code {fetch.pinned('newest')} was not fetched, nothing was")
    assert oldest.startswith(f"Claude Code {fetch.pinned('oldest')} was not fetched, nothing was")
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("version", ["latest", "2.1.330"])
def test_a_silent_registry_is_given_up(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for name, value in nowhere(tmp_path, silent.getsockname()[1]).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(fetch, "REACHED_SECS", 2)
        with pytest.raises(fetch.NotFetchedError, match="npm: "):
            fetch.fetched(version)


def nowhere(folder: Path, port: int) -> dict[str, str]:
    """Return an environment with an empty cache and this registry."""
    return {
        "XDG_CACHE_HOME": str(folder),
        "npm_config_cache": str(folder / "npm"),
        "npm_config_registry": f"http://127.0.0.1:{port}/",
    }
