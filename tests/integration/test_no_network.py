"""A stack opens no port, and connects only to addresses that its user set."""

import psutil  # type: ignore[import-untyped]

from tests.conftest import until
from tests.installed import User


def test_no_process_of_a_stack_has_a_connection_or_a_port(user: User) -> None:
    user.hivepipe("init")
    user.hivepipe("up", "-d")
    user.play_session()
    until(lambda: user.sessions(), "nothing was recorded")
    found = [process for process in psutil.process_iter() if belongs_to(process, user)]
    assert len(found) >= 4
    assert [each.net_connections("inet") for each in found if each.net_connections("inet")] == []


def belongs_to(process: psutil.Process, user: User) -> bool:
    try:
        return str(process.cwd()).startswith(str(user.home))
    except psutil.Error:
        return False
