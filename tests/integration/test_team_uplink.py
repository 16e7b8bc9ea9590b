"""The uplink as a process: what `team status` says of it."""

import pytest

from hivepipe.home import Place
from hivepipe.stack.lock import Stack, make_private
from hivepipe.team.membership import Membership, write
from hivepipe.team.uplink_status import UplinkStatus, read_status, write_status
from hivepipe.worker import uplink
from tests.conftest import Home


def test_an_uplink_that_ends_by_a_fault_is_not_called_connected(
    private_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("membership", "user_file"):
        folder = f"hivepipe.team.{module}.user_config_folder"
        monkeypatch.setattr(folder, lambda: str(private_home.root))
    write(Membership("ann", "desk", "postgresql://h:5432/d", {"*": "everything"}))
    place = Place(str(private_home.project), str(private_home.path), {})
    stack = Stack.of(place)
    make_private(stack.folder)
    private_home.path.mkdir(parents=True, exist_ok=True)
    write_status(place.home, UplinkStatus(state="connected", since=1.0))
    process = uplink.Uplink(stack)

    def fails() -> None:
        raise UnicodeEncodeError("latin-1", "x", 0, 1, "not in range")

    monkeypatch.setattr(process, "_ship", fails)
    with pytest.raises(UnicodeEncodeError):
        process.run()
    found = read_status(place.home)
    assert found.state == "away"
    assert found.error.startswith("UnicodeEncodeError: ")
    assert found.since > 1.0
