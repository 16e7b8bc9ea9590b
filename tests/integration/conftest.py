"""Fixtures: an installation, wheels, an unprivileged user, and a team's PostgreSQL."""

import os
import posix
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from hivepipe.team import schema_steps
from tests.conftest import ROOT, Home, folder_of_homes
from tests.conftest import Server as RedisServer
from tests.installed import Installation, User, require_user
from tests.object_store import ObjectStore, object_store
from tests.postgres import Server, serving
from tests.team_scene import Team
from tests.wheels import Wheels


@pytest.fixture(scope="session")
def installation() -> Iterator[Installation]:
    require_user()
    folder = Path(tempfile.mkdtemp(prefix="hp-", dir="/tmp"))
    folder.chmod(0o755)
    made = Installation(folder, Path(os.environ.get("TEST_CODE", ROOT)))
    yield made
    made.end()
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return Wheels(tmp_path_factory)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="hp-", dir=folder_of_homes())).resolve()
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def user(installation: Installation, folder: Path) -> Iterator[User]:
    account = User(folder, installation)
    yield account
    account.end_all()


@pytest.fixture(scope="session")
def s3() -> Iterator[ObjectStore]:
    with object_store() as running:
        yield running


@pytest.fixture
def bucket(s3: ObjectStore) -> ObjectStore:
    s3.empty()
    return s3


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Start the PostgreSQL 18 of the wheel, or another one whose program folder TEST_PG names.

    It does not sync, because no test cuts the power: a killed server finds what the kernel has.
    Nothing is vacuumed in the background, because each test has another small database.
    """
    named = os.environ.get("TEST_PG")
    quick = ("-c", "fsync=off", "-c", "autovacuum=off")
    with serving(Path(named) if named else None, *quick) as server:
        yield server


@pytest.fixture(scope="session")
def unused_team(postgres: Server) -> Team:
    """The team that is copied for each test."""
    return Team.on(postgres)


@pytest.fixture
def older_team(postgres: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Team:
    """A team on a server without the steps from 017 on."""
    steps = shutil.copytree(schema_steps._FOLDER, tmp_path / "schema")
    for each in [*steps.glob("*.sql")]:
        if each.name >= "017":
            each.unlink()
    with monkeypatch.context() as older:
        older.setattr(schema_steps, "_FOLDER", steps)
        return Team.on(postgres)


@pytest.fixture
def no_team(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The user that runs the tests belongs to no team."""
    monkeypatch.setitem(posix.environ, b"XDG_CONFIG_HOME", os.fsencode(tmp_path / "config"))


@pytest.fixture
def team(unused_team: Team, no_team: None) -> Iterator[Team]:
    """A team in a new database, which is deleted afterwards, because it may be in memory."""
    made = unused_team.copied()
    yield made
    made.server.psql(f"DROP DATABASE {made.database} WITH (FORCE)")


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    with redis_server.client() as made:
        yield made


@pytest.fixture
def scene(private_home: Home) -> Iterator[Any]:
    """A hive. The modules about other things have a scene of their own."""
    from tests.hive_scene import played  # noqa: PLC0415  few tests need it

    yield from played(private_home)


@pytest.fixture
def llm() -> Iterator[Any]:
    from tests.llm_server import provider  # noqa: PLC0415  few tests need it

    with provider() as server:
        yield server


@pytest.fixture
def address(private_home: Home, redis_server: RedisServer) -> Iterator[str]:
    """The address of a page that the test's process serves, with its token."""
    from tests.web_scene import served_page  # noqa: PLC0415  few tests need it

    with served_page(private_home.project) as served:
        yield served


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from tests.browser_scene import running_chromium  # noqa: PLC0415  few tests need it

    with running_chromium() as running:
        yield running


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """A user's browser without history."""
    from tests.browser_scene import SLOW_MS, Browser  # noqa: PLC0415  few tests need it

    context = chromium.new_context()
    context.set_default_timeout(SLOW_MS)
    yield Browser(context)
    context.close()
