"""Sessions of other programs than Claude Code are recorded with the name of the program."""

import json

from tests.conftest import Home, Server, Writer, fire_all, is_drained, until
from tests.host_payloads import CODEX, COPILOT
from tests.payloads import SESSION, SESSION_START


def test_a_session_is_shown_with_the_name_of_its_host(
    private_home: Home, redis_server: Server, writer: Writer
) -> None:
    fire_all([SESSION_START, *CODEX, *COPILOT], private_home.env)
    writer.start()
    until(lambda: is_drained(private_home, redis_server, writer), "not drained")
    shown = json.loads(private_home.command("sessions", "--all", "--json"))["sessions"]
    clients = {each["id"]: each["client"] for each in shown}
    codex, copilot = CODEX[0]["session_id"], COPILOT[0]["session_id"]
    assert clients == {SESSION: "claude-code", codex: "codex", copilot: "copilot"}
    by_id = {each["id"]: each for each in shown}
    assert by_id[codex]["status"] == "ended"
    assert by_id[codex]["model"] == "gpt-5.5"
    assert by_id[copilot]["failed"] == 1
    assert "copilot" in private_home.command("sessions", "--all")
    assert "codex" in private_home.command("session", "show", codex)
    assert "claude-code" not in private_home.command("session", "show", SESSION)
