"""Play the scenarios with versions of Claude Code: `make real [VERSION=latest] [SHORT=yes]`.

Each version runs in a network namespace with loopback only, if the system permits one. A report
follows each version: what was compared, and which names hivepipe does not know.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.real.fetch import HOSTS, VERSIONS, NotFetchedError, fetched, fetched_host, pinned
from tests.real.names import declared_events
from tests.real.report import report
from tests.real.tally import Total

OF_HOSTS = Path(__file__).with_name("test_real_hosts.py")
# One scenario of each kind. They find the most frequent breakages in a few minutes.
SHORT = (
    "every-file-tool", "agents-at-once", "resumed-twice", "overloaded",
    "without_hooks", "killed_client", "session_ends",
)  # fmt: skip
INSIDE = 'ip link set lo up && exec "$@"'


def main(arguments: list[str]) -> int:
    """Play with the versions in the arguments, or with all pinned versions."""
    short = "--short" in arguments
    versions = [each for each in arguments if each != "--short"] or [
        *tomllib.loads(VERSIONS.read_text())
    ]
    worst = 0
    for version in dict.fromkeys(map(pinned, versions)):
        try:
            program = fetched(version)
        except NotFetchedError as error:
            print(f"Claude Code {version} was not fetched, nothing was tried with it: {error}")
            continue
        version = program.parent.name
        print(f"Claude Code {version}, {'loopback only' if namespace() else 'with a network'}")
        code, total = play_counted(program, SHORT if short else ())
        worst = max(worst, code)
        for line in report(version, total, declared_events(program)):
            print(line, flush=True)
    return worst if arguments else max(worst, play_hosts())


def play_counted(program: Path, names: Sequence[str]) -> tuple[int, Total]:
    """Play with a client and return pytest's exit code and the counts."""
    with tempfile.TemporaryDirectory() as folder:
        # pytest counts assertions only in modules that it compiled with this option.
        options = f"{os.environ.get('PYTEST_ADDOPTS', '')} -o enable_assertion_pass_hook=true"
        counting = {"TEST_TALLY": f"{folder}/tally", "PYTHONPYCACHEPREFIX": f"{folder}/compiled",
                    "PYTEST_ADDOPTS": options}  # fmt: skip
        code = play("TEST_CLAUDE", program, Path(__file__).parent, names, counting)
        return code, Total.read(Path(folder, "tally"))


def play_hosts() -> int:
    """Play with the other hosts in hosts.toml."""
    worst = 0
    for name in tomllib.loads(HOSTS.read_text()):
        try:
            program = fetched_host(name)
        except NotFetchedError as error:
            print(f"{name} was not fetched, nothing was tried with it: {error}")
            continue
        print(name)
        worst = max(worst, play(f"TEST_{name.upper()}", program, OF_HOSTS))
    return worst


def play(
    variable: str,
    program: Path,
    tests: Path,
    names: Sequence[str] = (),
    env: Mapping[str, str] = MappingProxyType({}),
) -> int:
    """Run tests with the program that a variable names, and return pytest's exit code.

    `names` selects tests; all are run without it. Failed tests are run once more, as in `make
    test`.
    """
    chosen = ["-k", " or ".join(names)] if names else []
    words = [sys.executable, "-m", "pytest", "-q", str(tests), *chosen]
    env = {**os.environ, **env, variable: str(program)}
    code = subprocess.run([*namespace(), *words], env=env, check=False).returncode
    if code != pytest.ExitCode.TESTS_FAILED:
        return code
    again = [*words, "--last-failed", "--last-failed-no-failures", "none"]
    return subprocess.run([*namespace(), *again], env=env, check=False).returncode


def namespace() -> list[str]:
    """Return a command prefix that removes the network; empty if the system refuses it."""
    of_users = [] if os.geteuid() == 0 else ["--map-root-user"]
    words = ["unshare", "--net", *of_users, "sh", "-c", INSIDE, "sh"]
    try:
        tried = subprocess.run([*words, "true"], capture_output=True, check=False)
    except OSError:
        return []
    return [] if tried.returncode else words


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
