"""A folder that another user created in /tmp first is not used and does not prevent a start."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import until
from tests.installed import Installation, User

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")

# a separate uid, because tests of other users may need the same folder
OWN_UID = 50_000 + os.getpid() % 10_000
OTHER_UID = 61_234
BECOME = ["setpriv", f"--reuid={OWN_UID}", f"--regid={OWN_UID}", "--clear-groups"]


class SeparateUser(User):
    """A user with a separate uid and no XDG_RUNTIME_DIR."""

    account = "ann"
    become = BECOME


@pytest.fixture
def account(installation: Installation, folder: Path) -> Iterator[SeparateUser]:
    account = SeparateUser(folder / "own", installation)
    subprocess.run(["chown", "-R", f"{OWN_UID}:{OWN_UID}", folder / "own"], check=True)
    del account.env["XDG_RUNTIME_DIR"]
    yield account
    account.end_all()


@contextmanager
def planted(kind: str, target: Path) -> Iterator[Path]:
    """Create what another user could create there; `target` is where a link leads."""
    place = Path(f"/tmp/hivepipe-{OWN_UID}")
    if kind == "folder":
        place.mkdir(0o700)
    elif kind == "link":
        place.symlink_to(target)
    else:
        place.touch(0o600)
    os.chown(place, OTHER_UID, OTHER_UID, follow_symlinks=False)
    try:
        yield place
    finally:
        place.rmdir() if kind == "folder" else place.unlink()


def test_another_users_folder_in_tmp_does_not_prevent_a_start(
    account: SeparateUser, folder: Path
) -> None:
    target = folder / "target"
    target.mkdir()
    target.chmod(0o777)
    used_instead = f"unix://{account.home}/.local/state/hivepipe/run/"
    for kind in ("folder", "file"):
        with planted(kind, target) as place:
            assert account.do("mkdir", place / "x").returncode != 0
            account.hivepipe("init")
            assert account.hivepipe("url").startswith(used_instead), kind
            account.hivepipe("uninstall", "--purge", "--yes")
    with planted("link", target):
        account.hivepipe("init")
        account.fire("SessionStart", source="startup")  # starts the stack
        until(account.sessions, "no session was recorded")
        assert account.hivepipe("url").startswith(used_instead)
        assert list(target.iterdir()) == []
        account.hivepipe("down")
    assert not (account.home / ".local/state/hivepipe/run").exists()


def test_an_own_folder_in_tmp_is_used(account: SeparateUser) -> None:
    account.hivepipe("init")
    account.hivepipe("up", "-d")
    place = Path(f"/tmp/hivepipe-{OWN_UID}")
    assert account.hivepipe("url").startswith(f"unix://{place}/")
    account.hivepipe("down")
    assert not place.exists()


def test_an_unwritable_tmp_does_not_prevent_a_start(account: SeparateUser, folder: Path) -> None:
    seen = "mount --bind $0 $0; mount --rbind /tmp /tmp; mount -o remount,ro,bind /tmp"
    unshared = ["unshare", "-m", "sh", "-ec", f'{seen}; exec "$@"', str(folder)]
    account.become = [*unshared, *BECOME]
    assert account.do("touch", "/tmp/x").returncode != 0
    account.hivepipe("init")
    account.fire("SessionStart", source="startup")  # starts the stack
    until(account.sessions, "no session was recorded")
    url = account.hivepipe("url").strip()
    assert url.startswith(f"unix://{account.home}/.local/state/hivepipe/run/")
    account.hivepipe("down")
