"""An installation, and a user of it whom the kernel stops."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.installed import Installation, User, require_user


@pytest.fixture(scope="session")
def installation() -> Iterator[Installation]:
    require_user()
    folder = Path(tempfile.mkdtemp(prefix="hp-", dir="/tmp"))
    folder.chmod(0o755)
    yield Installation(folder, Path(os.environ.get("TEST_CODE", ROOT)))
    shutil.rmtree(folder)


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="hp-", dir="/tmp")).resolve()
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def user(installation: Installation, folder: Path) -> Iterator[User]:
    account = User(folder, installation)
    yield account
    account.end_all()
