"""Fixtures that several unit tests use."""

import posix
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hivepipe import redact, settings
from hivepipe.db.database import Database
from hivepipe.home import locate
from hivepipe.redact.user_rules import parse, redactor
from tests.archive_scene import Scene
from tests.conftest import short_folder
from tests.store_scene import new_database
from tests.web_scene import TOKEN, archive_hostile_session, record_hostile

DIGITS = "[[redaction.rules]]\nname = 'digits'\npattern = '[0-9]{4}'\nreplacement = 'DIGITS'\n"

Environ = dict[bytes, bytes]


tmp_path = pytest.fixture(short_folder, name="tmp_path")  # no test waits for a sync


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Environ]:
    """The environment that hivepipe reads, with nothing but HOME; no settings of files."""
    seen = {b"HOME": bytes(tmp_path)}
    monkeypatch.setattr(posix, "environ", seen)
    settings.use({})
    yield seen
    settings.use({})


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with closing(new_database(tmp_path / "hive.db")) as made:
        yield made


@pytest.fixture
def rule_of_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a rule of the user in force that matches four digits, also of ids, models and times."""
    monkeypatch.setattr(redact, "_to_load", [])
    monkeypatch.setattr(redact, "_in_force", [redactor([parse(DIGITS)])])


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Claude Code's folder and an archive below tmp_path, without fsync."""
    monkeypatch.setattr("hivepipe.archive.sources.user_folder", lambda: str(tmp_path))
    monkeypatch.setattr("os.fsync", lambda _descriptor: None)
    return Scene(tmp_path)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one session whose texts all contain hostile markup."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HIVEPIPE_HOME", str(home))
    record_hostile(home)
    return home


@pytest.fixture
def anonymous_client(home: Path) -> Any:
    """A client of the page that has no token yet."""
    app = pytest.importorskip("hivepipe.web.app", exc_type=ImportError)
    client = pytest.importorskip("starlette.testclient").TestClient
    served = app.web_app(locate(str(home.parent)), TOKEN, is_local=True)
    return client(served, base_url="http://127.0.0.1:9182", follow_redirects=False)


@pytest.fixture
def client(anonymous_client: Any) -> Any:
    """A client of the page that has the cookie."""
    assert anonymous_client.get(f"/?token={TOKEN}").status_code == 302
    return anonymous_client


@pytest.fixture
def client_with_archive(client: Any, tmp_path: Path) -> Any:
    """A client of the page of a home with an archived conversation."""
    archive_hostile_session(tmp_path)
    return client
