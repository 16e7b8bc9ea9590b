"""The page used by keyboard only, and with hostile texts on every view and in RQ's own one."""

from collections.abc import Iterator
from typing import Any

import pytest

from hivepipe.home import short_hash
from hivepipe.web.views import VIEWS
from tests.browser_scene import Browser, is_live, shows
from tests.conftest import Home, Server, Writer, until
from tests.integration.test_failed import add_failed_job, change, fail_agent_job
from tests.integration.test_web_rq import PAGES, add_markup
from tests.web_scene import HOSTILE, SESSION, archive_hostile_session, record_hostile

MOST_TABS = 80
FOCUSED = """
    (() => { const at = document.activeElement;
      const name = at.labels?.[0]?.textContent || at.getAttribute('aria-label') || at.textContent;
      return [name.trim(), getComputedStyle(at).outlineStyle !== 'none' || at.matches('main')]; })()
"""


@pytest.fixture
def page(address: str, browser: Browser) -> Iterator[Any]:
    yield browser.page(address)
    assert browser.console == []


def tab_to(page: Any, name: str) -> None:
    """Press Tab until the named element has the focus, which must be visible at each step."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        called, is_seen = page.evaluate(FOCUSED)
        assert is_seen, f"the focus is not visible on {called}"
        if called.startswith(name):
            return
    pytest.fail(f"Tab does not reach {name}")


def test_everything_works_by_keyboard_alone(
    page: Any, private_home: Home, redis_server: Server, writer: Writer
) -> None:
    swarm = fail_agent_job(private_home, redis_server, writer)
    change(private_home, "INSERT INTO swarms (id, name) VALUES (?, 'shop')", swarm)
    page.reload()
    tab_to(page, "To the content")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.reload()
    tab_to(page, "Agents")
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents")
    tab_to(page, "Type")
    page.keyboard.type("Nobody")
    page.keyboard.press("Enter")
    page.wait_for_url("**type=Nobody*")
    tab_to(page, "Queues")
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues")
    tab_to(page, "insert_agent")
    page.keyboard.press("Space")
    tab_to(page, "Retry ticked")
    page.keyboard.press("Enter")
    shows(page, "h1")("Retry 1 failed job of")
    tab_to(page, "Retry 1")
    page.keyboard.press("Enter")
    shows(page, "section [role=status]")("1 of 1")
    until(lambda: private_home.count("agents") == 1, "not written")
    tab_to(page, "Project")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/queues?home=*")


def test_hostile_texts_execute_no_script(
    page: Any, private_home: Home, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = private_home.database.parent
    record_hostile(home)
    monkeypatch.setenv("HIVEPIPE_HOME", str(home))
    monkeypatch.setenv("HOME", private_home.env["HOME"])
    archive_hostile_session(private_home.root)
    add_failed_job(redis_server, "dead", HOSTILE.encode(), description=HOSTILE)
    base = page.url.rpartition("/")[0]
    shown = ""
    session = f"session/{short_hash(str(home))}/{SESSION}"
    for view in [*VIEWS, "now?all=1", session, "search?q=script", f"agents?type={HOSTILE}"]:
        page.goto(f"{base}/{view}")
        is_live(page)
        for folded in page.locator("summary").all():
            folded.click()
        if view.startswith("search?"):
            page.locator("a.found").first.click()
            page.wait_for_selector("#open")
        assert page.locator("main img, main script").count() == 0
        assert "hivepipe" in page.title()
        shown += page.inner_text("main")
    assert shown.count("<script>alert(1)</script>") > 8
    assert "\\u202e" in shown


def test_in_a_browser_no_script_in_data_runs_and_rqs_pages_work(
    page: Any, private_home: Home, redis_server: Server
) -> None:
    add_markup(redis_server)
    rq = page.url.replace("/now", f"/rq/{short_hash(str(private_home.path))}")
    for path in PAGES:
        page.goto(f"{rq}/{path}")
        until(lambda: "&lt;img src=x" in page.content(), "the page's script did not run")
        assert page.title() == "RQ dashboard", path
        assert "<img src=" not in page.content(), path
