"""Fetch Claude Code by name from npm: `python -m tests.real.fetch [VERSION]`.

It prints the path of the program. Without a program it exits with 3 and prints the reason in one
line. Only the native program of the platform's package is used. No script of any package runs.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

VERSIONS = Path(__file__).with_name("versions.toml")
HOSTS = Path(__file__).with_name("hosts.toml")
AXE = "4.14.1"
NOT_FETCHED = 3
NPM_SECS = 300
REACHED_SECS = 10  # an answer about a version has some kilobytes


class NotFetchedError(Exception):
    """npm is not there, cannot be reached, or has no such version."""


def pinned(name: str) -> str:
    """Return the version that a name such as `newest` stands for, else the text itself."""
    versions: dict[str, str] = tomllib.loads(VERSIONS.read_text())
    return versions.get(name, name)


def fetched(version: str) -> Path:
    """Return the program of a version, from the cache or npm; raise NotFetchedError otherwise."""
    if version == "latest":
        version = _latest()
    program = kept(version)
    if program is None:
        folder = _cache() / version
        _fetch(version, folder)
        program = folder / "claude"
    return program


def kept(version: str) -> Path | None:
    """Return the cached program of a version, or None."""
    program = _cache() / version / "claude"
    return program if program.exists() else None


def fetched_host(name: str) -> Path:
    """Return the program of another host in hosts.toml, from the cache or from npm."""
    host = tomllib.loads(HOSTS.read_text())[name]
    folder = _cache().with_name(name) / host["version"]
    if not folder.exists():
        _install(f"{host['package']}@{host['version']}", "node_modules", folder)
    programs = (path for path in folder.rglob(name) if path.is_file() and not path.is_symlink())
    # The native program is the largest file.
    return max(programs, key=lambda path: path.stat().st_size)


def fetched_axe() -> Path:
    """Return the script of axe-core, the accessibility checker, from the cache or from npm."""
    folder = _cache().with_name("axe-core") / AXE
    if not folder.exists():
        _install(f"axe-core@{AXE}", "node_modules/axe-core", folder)
    return folder / "axe.min.js"


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "hivepipe", "claude-code")


def _latest() -> str:
    return _asked(_package())


def _asked(package: str) -> str:
    """Return npm's version of a package; fail within seconds if npm cannot be reached."""
    limits = ["--fetch-retries=0", f"--fetch-timeout={REACHED_SECS * 1000}"]
    said = _npm("view", package, "version", *limits, secs=REACHED_SECS * 2)
    if not said.strip():
        raise NotFetchedError(f"npm: there is no {package}")
    return said.strip()


def _fetch(version: str, folder: Path) -> None:
    """Install the platform's package and move its program to the cache."""
    _install(f"{_package()}@{version}", f"node_modules/{_package()}", folder)


def _install(package: str, wanted: str, folder: Path) -> None:
    _asked(package)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as work:
        _npm("install", "--ignore-scripts", "--no-audit", "--no-fund", "--force",
             "--prefix", work, package)  # fmt: skip
        Path(work, wanted).rename(folder)


def _package() -> str:
    kind = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"@anthropic-ai/claude-code-{sys.platform}-{kind}"


def _npm(*words: str, secs: float = NPM_SECS) -> str:
    try:
        done = subprocess.run(
            ["npm", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=secs,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotFetchedError(f"npm: {error}") from error
    if done.returncode:
        errors = re.findall(r"npm (?:error|ERR!) (.+)", done.stderr)
        raise NotFetchedError(f"npm: {errors[0] if errors else done.stderr.strip()[-200:]}")
    return done.stdout


if __name__ == "__main__":
    try:
        print(fetched(pinned(sys.argv[1] if len(sys.argv) > 1 else "newest")))
    except NotFetchedError as error:
        print(f"Claude Code was not fetched, nothing was tried with it: {error}", file=sys.stderr)
        sys.exit(NOT_FETCHED)
