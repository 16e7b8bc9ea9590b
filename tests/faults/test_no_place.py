"""Neither Redis nor the home accepts an event: it is kept in memory, otherwise counted as lost."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hivepipe.queue.lost_events import lost_events
from hivepipe.queue.spool import MOST_SPARE_FILES, all_folders
from tests.conftest import until
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.sandbox import Sandbox, eventually

NUMBER = 10


@contextmanager
def immutable(*folders: Path) -> Iterator[None]:
    """Forbid creating, renaming and removing files in folders, even for root."""
    present = [folder for folder in folders if folder.is_dir()]
    if os.geteuid() or not all(chattr("+i", folder) for folder in present):
        pytest.skip("this file system has no immutable folders, or not for us")
    try:
        for folder in present:
            with pytest.raises(PermissionError):
                (folder / "probe").write_bytes(b"x")
        yield
    finally:
        for folder in present:
            chattr("-i", folder)


def chattr(flag: str, folder: Path) -> bool:
    done = subprocess.run(["chattr", flag, str(folder)], capture_output=True, check=False)
    return done.returncode == 0


def prompts(number: int, first: int = 0) -> tuple[oracle.Fired, ...]:
    session = oracle.SESSIONS[0]
    made = (oracle.prompt(n, session, "inst-a") for n in range(first, first + number))
    return oracle.timed(made)


@pytest.fixture
def folders(bench: Bench) -> Iterator[list[Path]]:
    """The folders that take events of this home; the memory folder is removed afterwards."""
    runtime = Path(bench.server.address).parent
    memory = Path(all_folders(str(bench.home.path))[2])
    yield [bench.home.path, runtime, memory]
    subprocess.run(["rm", "-rf", str(memory)], check=True)


def redis_is_gone(bench: Bench) -> None:
    bench.server.end(signal.SIGKILL)
    bench.redis.connection_pool.disconnect()


@pytest.mark.parametrize("denied", [1, 2], ids=["home", "home and runtime folder"])
def test_events_go_to_memory_while_the_home_is_immutable(
    bench: Bench, folders: list[Path], denied: int
) -> None:
    fired = prompts(NUMBER)
    redis_is_gone(bench)
    with immutable(*folders[:denied], bench.home.path / "spool"):
        bench.fire(fired, 4)
        # Hooks that create a folder at the same time may use the next one.
        kept = [each for folder in folders[denied:] for each in folder.glob("spool/*.json")]
        assert len(kept) == NUMBER
        said = bench.command("status", expect=None)
        assert f"{NUMBER} of them outside the home" in said
    bench.server.start()
    writer = bench.plain_writer()
    until(lambda: not list((folders[denied] / "spool").glob("*")), "it stays in memory")
    bench.settle(writer)
    bench.assert_tables(fired, exact_times=False)
    assert lost_events(str(bench.home.path)) is None


def test_lost_events_are_counted_and_shown(bench: Bench, folders: list[Path]) -> None:
    writer = bench.plain_writer()
    until(lambda: (folders[0] / "lost-events").exists(), "no file for the count")
    writer.end()
    redis_is_gone(bench)
    bench.home.logs.mkdir(exist_ok=True)  # every stack makes this folder
    full = folders[2] / "spool"
    full.mkdir(parents=True, mode=0o700)
    for folder in (folders[2], folders[2].parent):
        folder.chmod(0o700)
    for number in range(MOST_SPARE_FILES):
        (full / f"{number}.other").touch()
    with immutable(*folders[:2], folders[0] / "spool"):
        bench.fire(prompts(NUMBER), 4)
        text = f"{NUMBER} events could not be kept between 20"
        assert text in bench.command("status", expect=None)
        assert text in bench.command("doctor", expect=None)
    assert bench.hook_log.count("the event is lost") == NUMBER
    found = lost_events(str(bench.home.path))
    assert found
    assert found.number == NUMBER


def test_down_leaves_events_that_only_memory_has(sandbox: Sandbox) -> None:
    sandbox.run("up", "-d")
    spool = Path(sandbox.socket).parent / "spool"
    sandbox.run("down")
    with immutable(sandbox.home, sandbox.home / "spool"):
        sandbox.fire("s-1")
    assert len(list(spool.glob("*.json"))) == 1
    sandbox.run("down")
    assert len(list(spool.glob("*.json"))) == 1
    sandbox.run("up", "-d")
    eventually(lambda: sandbox.sessions() == {"s-1"})
    eventually(lambda: not list(spool.glob("*.json")))
