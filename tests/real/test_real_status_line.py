"""The status line of the real client: hivepipe's alone, and together with the user's own."""

import json
import re

import pytest

from tests.real.environment import client_environment, needs_claude, settle, version
from tests.real.script import Say, Script
from tests.real.terminal import HAS_TMUX, on_terminal

pytestmark = [needs_claude, pytest.mark.skipif(not HAS_TMUX, reason="no tmux")]
HELLO = Script("hello", [[Say("Good morning, said the quokka.")]])
AGAIN = Script("again", [[Say("Welcome back, said the quokka.")]])
READY = "$0.00 session"  # the status line replaces "? for shortcuts"
USERS_OWN = "numbat's own line"
LINE = re.compile(r"\$(\d+\.\d\d) session · \$(\d+\.\d\d) today · (\d+) % context · cache \d:\d\d")


@pytest.mark.parametrize("has_own", [False, True])
def test_costs_and_context_are_shown_below_the_prompt(has_own: bool) -> None:
    with client_environment(HELLO, AGAIN, init=()) as person:
        settings = person.project / ".claude" / "settings.local.json"
        own = {"type": "command", "command": f'echo "{USERS_OWN}"'}
        if has_own:
            person.write(".claude/settings.local.json", json.dumps({"statusLine": own}))
        before = settings.read_bytes() if has_own else None
        person.hivepipe("init", "--no-probe", "--local", "--statusline")
        with on_terminal(person, ready=(READY,)) as terminal:
            terminal.say(HELLO.prompt("Please work"))
            terminal.shows("said the quokka")
            settle(person)
            # The client renews the line with each message.
            terminal.say(AGAIN.prompt("Please go on"))
            terminal.shows("Welcome back")
            terminal.shows("% context · cache")
            shown = terminal.screen
            terminal.say("/exit")
            terminal.wait()
        settle(person)
        found = LINE.search(shown)
        assert found, shown
        assert (USERS_OWN in shown) == has_own
        total = person.json("costs")["total"]["cost_usd"]
        # The client's own figure. Older clients write requests for titles to no transcript.
        assert 0 < float(found[1]) <= total + (0.005 if version() >= (2, 1, 330) else 0.02), shown
        assert 0 < float(found[2]) <= total + 0.005, shown
        assert int(found[3]) in range(1, 100)
        person.hivepipe("uninstall")
        assert (settings.read_bytes() if settings.exists() else None) == before
