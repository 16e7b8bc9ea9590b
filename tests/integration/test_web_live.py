"""Every view follows hooks and a stack by itself, for a session from first prompt to end."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.browser_scene import SLOW_MS, Browser, expect, is_live, shows
from tests.conftest import fire
from tests.payloads import (
    FAILED_BASH,
    PERMISSION_REQUEST,
    POST_AGENT_COMPLETED,
    POST_SKILL,
    PRE_AGENT,
    PRE_BASH,
    SESSION,
    SESSION_END,
    SESSION_START,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
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
        """Append lines to the transcript."""
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


@pytest.mark.long
def test_each_view_follows_the_hooks_and_can_be_filtered(watched: WatchedSession) -> None:
    before = {
        view: watched.page(view)
        for view in ("now", "agents", "search?q=quokka", "costs", "skills", "queues", "health")
    }
    watched.append(prompt(1, "Feed the quokka"), call(2, "Bash", "t1", command="ls quokka"))
    watched.fire(SESSION_START, USER_PROMPT_SUBMIT, PRE_AGENT, SUBAGENT_START, SUBAGENT_STOP)
    watched.fire(POST_AGENT_COMPLETED, changed(SUBAGENT_START, agent_id="b2", agent_type="Plan"))
    watched.fire(POST_SKILL, STOP)
    after = {
        "now": ".card",
        "agents": "tbody >> text=Plan",
        "search?q=quokka": "a.found >> text=Feed the",
        "costs": "td >> text=claude-opus-4-5-20251101",
        "skills": "tbody th >> text=release-notes",
        "queues": "tbody th >> text=start_session",
        "health": "tbody th >> text=SubagentStop",
    }
    for view, selector in after.items():
        before[view].wait_for_selector(selector, timeout=2 * SLOW_MS)
    _filter(before)
    assert watched.browser.console == []


def _filter(pages: dict[str, Any]) -> None:
    """Filter each view; the filter is in the address, and "back" removes it."""
    (home,) = pages["now"].locator("#home option").all()[1:]
    pages["now"].locator("#home").select_option(home.get_attribute("value"))
    pages["now"].wait_for_url("**/now?home=*")
    expect(pages["now"].locator(".card")).to_have_count(1)
    agents = pages["agents"]
    agents.get_by_label("Type").fill("Plan")
    agents.get_by_role("button", name="Filter").click()
    agents.wait_for_url("**/agents?type=Plan&outcome=")
    expect(agents.locator("tbody >> text=Explore")).to_have_count(0)
    agents.go_back()
    agents.wait_for_selector("tbody >> text=Explore")
    costs = pages["costs"]
    costs.get_by_label("Model").fill("none of these")
    costs.get_by_role("button", name="Filter").click()
    shows(costs, "main")("No message matches these filters")
    search = pages["search?q=quokka"]
    search.get_by_role("navigation", name="Narrow down").get_by_role("link", name="user").click()
    search.wait_for_url("**role=user*")
    expect(search.locator("a.found")).to_have_count(1)
