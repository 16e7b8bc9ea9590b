"""The public Python API: `hivepipe.__all__` and docs/python.md name the same things."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import hivepipe
from hivepipe.db.database import opened_file
from tests.store_scene import apply

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text()


@pytest.mark.parametrize("name", hivepipe.__all__)
def test_every_public_name_can_be_imported_first(name: str) -> None:
    script = f"from hivepipe import {name}; assert {name}.__doc__"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_the_page_names_exactly_the_public_names() -> None:
    named = set(re.findall(r"^- `(\w+)", PAGE, re.M)) | {"HivepipeError", "TimeLine"}
    assert named | {"Conversation"} == set(hivepipe.__all__)
    assert len(PAGE.splitlines()) <= 40


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hivepipe.nothing  # noqa: B018


def test_the_package_itself_imports_nothing() -> None:
    script = (
        "import sys; before = set(sys.modules); import hivepipe; print(set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "{'hivepipe'}"


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HIVEPIPE_HOME", str(home))
    with pytest.raises(hivepipe.HivepipeError, match="nothing is recorded yet"):
        exec(example, {})
    with opened_file(hivepipe.database_path(str(home))) as db:
        apply(db, "start_session")
    exec(example, {})
    assert capsys.readouterr().out == "s-1 active 0\n"
