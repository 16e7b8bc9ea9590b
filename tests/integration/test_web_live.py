"""Every view follows hooks and a stack by itself, for a session from first prompt to end."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.browser_scene import Browser, expect, is_live, shows
from tests.conftest import fire
from tests.payloads import (
    FAILED_BASH,
    PERMISSION_REQUEST,
    PRE_BASH,
    SESSION,
    SESSION_END,
    SESSION_START,
    STOP,
    USER_PROMPT_SUBMIT,
    changed,
)
from tests.sandbox import Sandbox, new_sandbox
from tests.web_scene import call, prompt, result


@dataclass
class WatchedSession:
    """A session of Claude Code with a stack, and a browser that shows its pages."""

    sandbox: Sandbox
    browser: Browser
    address: str

    @property
    def transcript(self) -> Path:
        return self.sandbox.folder / f"user/.claude/projects/-shop/{SESSION}.jsonl"

    def fire(self, *events: dict[str, Any]) -> None:
        env = self.sandbox.env | {
            "CLAUDE_PROJECT_DIR": str(self.sandbox.project),
            "HIVEPIPE_INSTANCE_ID": SESSION,
        }
        for event in events:
            here = {"cwd": str(self.sandbox.project), "transcript_path": str(self.transcript)}
            fire(event["hook_event_name"], changed(event, **here), env)

    def append(self, *lines: bytes) -> None:
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        where = str(self.sandbox.project).encode()
        with self.transcript.open("ab") as file:
            file.write(b"".join(lines).replace(b"/home/ana/shop", where))

    def page(self, path: str) -> Any:
        page = self.browser.page(f"{self.address.partition('/?')[0]}/{path}")
        is_live(page)
        return page


@pytest.fixture
def watched(browser: Browser) -> Iterator[WatchedSession]:
    with new_sandbox() as sandbox:
        sandbox.run("init", "--local", "--no-probe")
        sandbox.run("up", "-d")
        serving = sandbox.start("web", "--port", "0", "--no-open")
        assert serving.stdout
        address = serving.stdout.readline().strip()
        browser.page(address)
        yield WatchedSession(sandbox, browser, address)
        serving.terminate()
        serving.communicate(timeout=30)


def test_a_session_is_followed_from_its_first_prompt_to_its_end(watched: WatchedSession) -> None:
    page = watched.page("now")
    shows(page, "main")("No open session")
    watched.append(prompt(1, "Mend the cart"))
    watched.fire(SESSION_START, changed(USER_PROMPT_SUBMIT, prompt="Mend the cart"))
    shows(page, ".card .works")("works")
    page.locator(".card a").click()
    watched.append(
        call(2, "Bash", "t1", command="ls cart"), result(4, "t1", "no such cart", failed=True)
    )
    watched.fire(PRE_BASH, FAILED_BASH, STOP)  # the end of a turn archives the lines
    shows(page, "article.user")("Mend the cart")
    shows(page, "details.failure")("no such cart")
    expect(page.locator("svg rect.failure")).to_have_count(1)
    watched.fire(PERMISSION_REQUEST)
    shows(page, "dl .waits-for-you")("waits for you")
    watched.append(prompt(90, "Thank you"))
    watched.fire(changed(USER_PROMPT_SUBMIT, prompt="Thank you"), changed(STOP, prompt_id="p-2"))
    expect(page.locator("article.user")).to_have_count(2)
    watched.fire(SESSION_END)
    shows(page, "dl")("ended")
    page.go_back()
    shows(page, "main")("No open session")
    page.get_by_role("button", name="Show ended sessions").click()
    shows(page, "table")("ended")
    assert watched.browser.console == []
