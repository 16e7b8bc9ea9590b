"""Commands name the default home before they write to it, and never create it."""

import posix
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from hivepipe import settings
from hivepipe.cli.default_home import WRITING
from hivepipe.cli.examples import examples_of
from hivepipe.cli.main import commands, main
from tests.architecture.test_docs import CALLABLE

# Commands that register the current folder, create a folder, or run until they are stopped.
_EXCLUDED = (
    *("init", "uninstall", "up", "down", "restart", "demo", "mcp", "web"),
    *("on", "off", "rq"),
)
_FOLLOWING = ("tail", "logs", "hive monitor", "doctor")


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's folder with an unregistered working folder, in it the input files of examples."""
    folder = tmp_path / "unregistered"
    folder.mkdir()
    names = {"HOME": tmp_path, "XDG_RUNTIME_DIR": tmp_path / "run", "PATH": "/usr/bin:/bin"}
    seen = {name.encode(): str(value).encode() for name, value in names.items()}
    monkeypatch.setattr(posix, "environ", seen)
    monkeypatch.chdir(folder)
    for name in ("soul.md", "notes.txt", "task.md", "shop.hivepipe"):
        (folder / name).write_text("x" * 120)
    (tmp_path / "old" / "queue").mkdir(parents=True)
    (tmp_path / "old" / "hive.db").touch()
    yield tmp_path
    settings.use({})


def home_of(user: Path) -> Path:
    return user / ".local" / "state" / "hivepipe" / "default"


def run(user: Path, example: str) -> Result:
    words = example.split(" <")[0].split(" >")[0].replace("~", str(user))
    return CliRunner().invoke(main, shlex.split(words)[1:], input="y\n")


def writes(path: str, example: str) -> bool:
    return path in WRITING and (not WRITING[path] or example != f"hivepipe {path}")


def content(folder: Path) -> dict[str, bytes]:
    """Return the files of a home and their bytes, without the manifest."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(it): it.read_bytes() for it in files if not it.name.startswith("manifest.db")}


def commands_under_test() -> list[str]:
    return [
        path
        for path in CALLABLE
        if path.split()[0] not in _EXCLUDED and path not in _FOLLOWING and "completion" not in path
    ]


@pytest.mark.parametrize("path", commands_under_test())
def test_a_command_that_writes_to_the_default_home_names_it_and_none_creates_it(
    user: Path, path: str
) -> None:
    home = home_of(user)
    for example in examples_of(CALLABLE[path], path):
        done = run(user, example)
        assert not home.exists(), example
        if writes(path, example):
            assert done.exit_code == 1
            assert "hivepipe init" in done.stderr
    home.mkdir(parents=True, mode=0o700)
    for example in examples_of(CALLABLE[path], path):
        before = content(home)
        done = run(user, example)
        is_named = "acts on the default home, ~/.local/state/hivepipe/default" in done.stderr
        assert is_named == writes(path, example), done.stderr
        assert is_named or content(home) == before, example


@pytest.mark.parametrize(
    "words",
    [
        "forget",
        "forget abc --before 2026-11-21",
        "forget abc --json",
        "forget --matching abc",
        "failed retry",
        "failed retry abc --all",
        "failed discard",
        "disk --prune --log",
        "archive follow --stop",
        "search word --person ana",
        "search word --team --tool Bash",
    ],
)
def test_wrong_arguments_are_named_before_a_missing_default_home(user: Path, words: str) -> None:
    done = run(user, f"hivepipe {words}")
    assert done.exit_code == 64, done.output
    assert "default home" not in done.stderr
    assert not home_of(user).exists()


def test_every_writing_command_exists() -> None:
    def paths(command: click.Command, path: str) -> Iterator[str]:
        yield path
        for name, below in getattr(command, "commands", {}).items():
            yield from paths(below, f"{path} {name}")

    existing = {each for name, command in commands().items() for each in paths(command, name)}
    assert existing >= set(WRITING)
