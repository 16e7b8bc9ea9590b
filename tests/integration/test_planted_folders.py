"""Another user may make a folder in /tmp before we do: it is not used, and stops nothing."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import until
from tests.installed import User

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")

# Of its own: other tests of other users may need the same folder.
OURS = 50_000 + os.getpid() % 10_000
THEIRS = 61_234


class Somebody(User):
    """A user with a number of their own, and no XDG_RUNTIME_DIR."""

    account = "somebody"
    before: tuple[str, ...] = ()  # a command that runs the rest

    def do(
        self, *words: str | Path, cwd: Path | None = None, data: str = "", **env: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as this user."""
        become = ["setpriv", f"--reuid={OURS}", f"--regid={OURS}", "--clear-groups"]
        return subprocess.run(
            [*self.before, *become, *map(str, words)],
            input=data,
            cwd=cwd or self.project,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def somebody(user: User, folder: Path) -> Iterator[Somebody]:
    account = Somebody(folder / "more", user.installation)
    subprocess.run(["chown", "-R", f"{OURS}:{OURS}", folder / "more"], check=True)
    del account.env["XDG_RUNTIME_DIR"]
    yield account
    account.end_all()


@pytest.fixture(params=["folder", "link", "file"])
def planted(request: pytest.FixtureRequest, folder: Path) -> Iterator[Path]:
    """Plant what another user could put there; yield the folder that a link leads to."""
    place, target = Path(f"/tmp/hivepipe-{OURS}"), folder / "target"
    target.mkdir()
    target.chmod(0o777)
    if request.param == "folder":
        place.mkdir(0o700)
    elif request.param == "link":
        place.symlink_to(target)
    else:
        place.touch(0o600)
    os.chown(place, THEIRS, THEIRS, follow_symlinks=False)
    yield target
    place.rmdir() if place.is_dir() and not place.is_symlink() else place.unlink()


def test_what_another_user_made_in_tmp_stops_no_stack(somebody: Somebody, planted: Path) -> None:
    place = Path(f"/tmp/hivepipe-{OURS}")
    assert somebody.do("mkdir", place / "x").returncode != 0 or place.is_symlink()
    shutil.rmtree(planted / "x", ignore_errors=True)
    somebody.hivepipe("init")
    somebody.fire("SessionStart", source="startup")  # starts the stack
    until(somebody.sessions, "no session was recorded")
    url = somebody.hivepipe("url").strip()
    assert url.startswith(f"unix://{somebody.home}/.local/state/hivepipe/run/")
    assert list(planted.iterdir()) == []
    somebody.hivepipe("down")
    assert not (somebody.home / ".local/state/hivepipe/run").exists()


def test_a_folder_of_ours_in_tmp_is_used_as_before(somebody: Somebody) -> None:
    somebody.hivepipe("init")
    somebody.hivepipe("up", "-d")
    place = Path(f"/tmp/hivepipe-{OURS}")
    assert somebody.hivepipe("url").startswith(f"unix://{place}/")
    somebody.hivepipe("down")
    assert not place.exists()


def test_an_unwritable_tmp_stops_no_stack(somebody: Somebody, folder: Path) -> None:
    seen = "mount --bind $0 $0; mount --rbind /tmp /tmp; mount -o remount,ro,bind /tmp"
    somebody.before = ("unshare", "-m", "sh", "-ec", f'{seen}; exec "$@"', str(folder))
    assert somebody.do("touch", "/tmp/x").returncode != 0
    somebody.hivepipe("init")
    somebody.fire("SessionStart", source="startup")  # starts the stack
    until(somebody.sessions, "no session was recorded")
    url = somebody.hivepipe("url").strip()
    assert url.startswith(f"unix://{somebody.home}/.local/state/hivepipe/run/")
    somebody.hivepipe("down")
