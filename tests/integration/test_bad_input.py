"""An unforeseen error, a full disk or invalid text gives one line and exit code 1."""

import os
import posix
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hivepipe import home, settings
from hivepipe.cli.main import main
from tests.installed import User, changed
from tests.outcome import outcome_of


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    seen = {b"HOME": bytes(tmp_path / "user"), b"HIVEPIPE_HOME": bytes(tmp_path / "home")}
    monkeypatch.setattr(posix, "environ", seen)
    folder = tmp_path.resolve() / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    yield folder
    settings.use({})


@pytest.mark.parametrize("words", [("task", "add", "\udcff"), ("session", "show", "\udcff")])
def test_text_that_is_not_utf_8_is_refused(project: Path, words: tuple[str, ...]) -> None:
    assert CliRunner().invoke(main, ["task", "add", "a good one"]).exit_code == 0
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 1
    assert done.stderr.startswith("hivepipe: not UTF-8: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_file_that_cannot_be_written_is_named(project: Path) -> None:
    in_the_way = Path(home.record_path(str(project)))
    in_the_way.mkdir(parents=True)
    done = CliRunner().invoke(main, ["off"])
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith(f"hivepipe: {in_the_way}")
    assert done.stderr.endswith(": Is a directory\n")
    assert list(in_the_way.parent.iterdir()) == [in_the_way]


def test_control_characters_of_a_projects_file_are_escaped(project: Path) -> None:
    settings_file = project / ".claude" / "settings.local.json"
    settings_file.parent.mkdir()
    settings_file.write_text('{"hooks": {"\\u001b[2J": {}}}')
    done = CliRunner().invoke(main, ["init"])
    assert done.exit_code == 1
    assert 'hooks of "\\x1b[2J" that are not a list' in done.stderr
    settings_file.write_text('{"hooks": {"\x9b2J": []}}')
    done = CliRunner().invoke(main, ["init", "--dry-run"])
    assert done.exit_code == 0
    assert "\x9b" not in done.stdout


def test_a_folder_name_that_is_not_utf_8_is_shown(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/sh\xf6p"))
    folder.mkdir()
    done = outcome_of(
        [sys.executable, "-I", "-m", "hivepipe.cli.main", "config"],
        {"HOME": str(tmp_path), "HIVEPIPE_HOME": str(folder), "LANG": "en_US.UTF-8"},
        folder,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "sh\\udcf6p/config.toml" in done.stdout


@pytest.mark.parametrize("name", ["sh\nop", "shop\r", "a\u2028b"])
def test_a_project_path_with_a_line_break_is_refused_in_one_line(user: User, name: str) -> None:
    folder = user.home / name
    folder.mkdir()
    user.own(folder)
    before = user.files()
    for words in (
        ("init",),
        ("init", "--dry-run"),
        ("up", "-d"),
        ("doctor",),
        ("home",),
        ("what",),
    ):
        done = user.do("hivepipe", *words, cwd=folder)
        lines = [line for line in (done.stdout + done.stderr).split("\n") if "rename" in line]
        assert len(lines) == (words[0] in ("init", "up", "doctor")), words
        assert all(line.isprintable() for line in done.stdout.split("\n")), words
        assert all("has a line break: rename the folder" in line for line in lines)
        assert done.returncode == (1 if lines else 0), words
    assert changed(before, user.files()) == {}


@pytest.mark.parametrize("variable", ["HOME", "XDG_DATA_HOME", "HIVEPIPE_HOME"])
def test_a_home_path_with_a_line_break_is_refused_with_what_to_do(
    user: User, variable: str
) -> None:
    user.env[variable] = str(user.home / "my\nfiles")
    before = user.files()
    for words in (("init",), ("init", "--dry-run"), ("up", "-d"), ("doctor",)):
        done = user.do("hivepipe", *words)
        said = done.stdout + done.stderr
        assert "has a line break: rename the folder" in said, words
        assert "hivepipe init" not in said, words
        assert done.returncode == 1, words
    assert changed(before, user.files()) == {}


def test_a_backup_of_a_read_only_home_names_the_home(user: User) -> None:
    user.hivepipe("init")
    user.recorded.chmod(0o500)
    assert user.do("sh", "-c", f"echo x > '{user.recorded}/probe'").returncode, (
        "the folder is writable"
    )
    output = user.hivepipe("backup", str(user.home / "b.tar.gz"), expect=1)
    assert output.strip() == f"hivepipe: {user.recorded} cannot be written: Permission denied"
    user.recorded.chmod(0o700)
