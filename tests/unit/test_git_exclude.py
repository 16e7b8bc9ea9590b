"""The line in a clone's exclude file: written to the right file, removed without other changes."""

import os
import posix
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe.install.git_exclude import (
    exclude_file,
    line_for,
    to_stop_ignoring,
    with_line,
    without_line,
)

LINE = "/.claude/settings.local.json"


@given(st.lists(st.sampled_from(["*.o", LINE, f"{LINE} ", "", "ä"])), st.booleans())
def test_removing_the_line_restores_the_file(lines: list[str], is_ended: bool) -> None:
    text = "\n".join(lines) + ("\n" if is_ended and lines else "")
    ours = with_line(text, LINE)
    assert LINE in ours.split("\n")
    assert without_line(ours, LINE) == text
    assert without_line(with_line(ours, "/sub/x"), LINE) == with_line(text, "/sub/x")


def test_a_line_of_the_users_own_is_not_ours() -> None:
    assert without_line(f"{LINE}\n*.o\n", LINE) == f"{LINE}\n*.o\n"


@pytest.mark.parametrize("end", ["\n", ""], ids=["ended", "not ended"])
def test_a_file_that_hivepipe_made_is_deleted(tmp_path: Path, end: str) -> None:
    """An editor may have removed the last line break."""
    exclude = tmp_path / "exclude"
    exclude.write_text(with_line("# hivepipe made this file\n", LINE).rstrip("\n") + end)
    edit = to_stop_ignoring(str(exclude), [LINE])
    assert edit is not None
    assert edit.after is None


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    folder = Path(os.fsdecode(bytes(tmp_path.resolve()) + b"/sh\xf6p [1]"))  # Latin-1, not UTF-8
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / "sub").mkdir()
    return folder


def test_the_exclude_file_is_found_under_any_folder_name(clone: Path) -> None:
    settings = str(clone / "sub" / ".claude" / "settings.local.json")
    assert exclude_file(settings) == str(clone / ".git" / "info" / "exclude")
    assert line_for(settings) == "/sub/.claude/settings.local.json"
    odd = str(clone / "sub" / "a[b]*" / ".claude" / "x")
    (clone / "sub" / "a[b]*").mkdir()
    assert line_for(odd) == r"/sub/a\[b]\*/.claude/x"


def test_an_old_git_is_asked_in_a_way_that_it_understands(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before 2.31, `rev-parse` prints the option --path-format as if it were a path."""
    folder = clone.parent / "bin"
    folder.mkdir()
    git = folder / "git"
    git.write_text(
        "#!/bin/bash\n"
        'for word; do [[ $word == --path-format=* ]] && echo "$word"; done\n'
        f'exec {shutil.which("git")} "${{@/--path-format=absolute/-q}}"\n'
    )
    git.chmod(0o755)
    monkeypatch.setitem(posix.environ, b"PATH", os.fsencode(f"{folder}:{os.environ['PATH']}"))
    settings = str(clone / "sub" / ".claude" / "settings.local.json")
    assert exclude_file(settings) == str(clone / ".git" / "info" / "exclude")


def test_a_bare_repository_has_no_exclude_file(tmp_path: Path) -> None:
    """A clone may contain a bare repository whose exclude file is a link to another file."""
    folder = tmp_path / "shipped"
    subprocess.run(["git", "init", "-q", "--bare", folder], check=True)
    assert exclude_file(str(folder / ".claude" / "settings.local.json")) is None
