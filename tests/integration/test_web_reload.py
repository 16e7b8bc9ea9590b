"""A reload of an open page keeps what its user entered, and is shown only if it succeeded."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db.database import Database
from hivepipe.stack import registration
from hivepipe.stack.runtime_folder import Stack
from tests.archive_scene import SESSION
from tests.browser_scene import NARROW, Browser, expect, is_live
from tests.conftest import Home, until
from tests.integration.test_web_browser import NOTICES
from tests.web_scene import insert, record_hostile

AT = "2026-11-21T11:00:00.000Z"


@pytest.fixture
def page(address: str, browser: Browser) -> Any:
    opened = browser.page(address)
    is_live(opened)
    return opened


def use_skill(database: Path, name: str) -> None:
    with closing(Database(database)) as db:
        insert(db, "skill_uses", session_id=SESSION, skill=name, kind="tool", success=0,
               created_at=AT)  # fmt: skip


def test_a_reload_keeps_entries_the_focus_and_the_scrolled_table(
    page: Any, private_home: Home
) -> None:
    record_hostile(private_home.database.parent)
    page.set_viewport_size(NARROW)
    page.goto(page.url.replace("/now", "/skills"))
    is_live(page)
    page.locator("#skill").fill("not sent yet")
    page.locator("#failed").check()
    page.locator(".wide").evaluate("each => each.scroll({ left: 40 })")
    for selector in ("main form button", ".wide", "#failed"):
        page.locator(selector).focus()
        use_skill(private_home.database, f"skill of {selector[:5]}")
        page.wait_for_selector(f"tbody th >> text='skill of {selector[:5]}'")
        assert page.evaluate(f"document.activeElement.matches('{selector}')"), selector
    assert page.locator("#skill").input_value() == "not sent yet"
    assert page.locator("#failed").is_checked()
    assert page.locator(".wide").evaluate("each => each.scrollLeft") == 40


def test_a_selection_is_kept_until_it_ends(page: Any, private_home: Home) -> None:
    record_hostile(private_home.database.parent)
    page.goto(page.url.replace("/now", "/skills"))
    is_live(page)
    page.locator("main > p").first.select_text()
    use_skill(private_home.database, "a new skill")
    page.wait_for_timeout(2000)
    assert page.evaluate("getSelection().toString()").startswith("Skills that")
    assert page.get_by_text("a new skill").count() == 0
    page.evaluate("getSelection().removeAllRanges()")
    page.wait_for_selector("tbody th >> text='a new skill'")


def test_a_page_says_that_no_answer_comes(page: Any) -> None:
    """As over a half-open connection."""
    page.evaluate("limit = 200")  # first: a load that begins now keeps the limit it began with
    page.route("**/now", lambda _route: None)
    page.evaluate("later(0)")
    expect(page.locator("#live")).to_have_text("not up to date: the server does not answer")
    page.unroute("**/now")
    page.evaluate("limit = 60000; later(0)")
    is_live(page)


def test_a_reload_announces_no_state_that_is_the_same(page: Any) -> None:
    page.evaluate(
        """() => {
          window.announced = 0;
          const count = (found) => (window.announced += found.length);
          const all = { childList: true, characterData: true, subtree: true };
          new MutationObserver(count).observe(document.getElementById("live"), all);
        }"""
    )
    assert page.evaluate("load().then(() => announced)") == 0
    assert page.evaluate("hear('lost'), Promise.resolve().then(() => announced)") == 1


def test_an_older_answer_replaces_no_newer_one(page: Any) -> None:
    held: list[Any] = []
    page.route("**/now", lambda route: held.append(route))
    page.evaluate("later(0)")
    until(lambda: page.wait_for_timeout(50) or held, "no request")  # after one that had begun
    page.evaluate("hear('changed'), hear('changed')")
    page.wait_for_timeout(1000)
    assert len(held) == 1
    for number, text in enumerate(("old", "new")):
        # The route is called while the page waits.
        until(lambda: page.wait_for_timeout(50) or held[number:], "no request")  # noqa: B023
        html = f"<main id='main'><h1>{text}</h1></main>"
        held[number].fulfill(content_type="text/html", body=html)
        expect(page.locator("h1")).to_have_text(text)
        page.wait_for_timeout(1000)
    assert len(held) == 2


def test_a_selected_value_that_is_gone_becomes_the_first_one(page: Any) -> None:
    """For example, an operation whose last failed job was retried."""
    shown = ""
    page.route("**/now", lambda route: route.fulfill(content_type="text/html", body=shown))
    for options in ("<option>all<option selected>old", "<option>all<option>new"):
        shown = f"<main id='main'><select id='each'>{options}</select></main>"
        page.evaluate("later(0)")
        page.wait_for_selector(f"#each >> text={options[-3:]}", state="attached")
    assert page.locator("#each").input_value() == "all"


def test_a_new_project_appears_in_the_choice(page: Any, private_home: Home) -> None:
    assert page.locator("#home option").count() == 2
    other = private_home.root / "another"
    other.mkdir()
    registration.register(str(other), Stack.prepared(str(private_home.root / "h")), sys.executable)
    expect(page.locator("#home option")).to_have_count(3)
    assert page.locator("#home").input_value() == ""


def test_the_link_to_a_team_appears_when_the_machine_joins(
    page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hivepipe.web.view_cache.LASTS_SECS", 0.0)
    page.goto(page.url.replace("/now", "/agents"))
    is_live(page)
    assert page.get_by_role("link", name="Team").count() == 0
    monkeypatch.setattr("hivepipe.team.membership.is_joined", lambda: True)
    page.evaluate("later()")
    expect(page.get_by_role("link", name="Team")).to_have_count(1)


def test_a_hidden_view_that_notifies_of_nothing_is_not_loaded(
    address: str, browser: Browser
) -> None:
    page = browser.page(address, NOTICES)
    page.goto(page.url.replace("/now", "/queues"))
    is_live(page)
    page.evaluate("localStorage.setItem('notice', 'on'), Notification.permission = 'granted'")
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true })")
    page.wait_for_timeout(1000)  # for a load that has begun
    loads: list[str] = []
    page.on("request", lambda each: loads.append(each.url))
    page.wait_for_timeout(6000)
    assert loads == []


RESUMED = "dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))"


@pytest.mark.parametrize("has_javascript", [True, False])
def test_filters_follow_the_address_after_back(
    address: str, chromium: Any, private_home: Home, *, has_javascript: bool
) -> None:
    record_hostile(private_home.database.parent)
    context = chromium.new_context(java_script_enabled=has_javascript)
    page = context.new_page()
    page.goto(address)
    page.goto(page.url.replace("/now", "/agents"))
    for choose, button in (("main form select", "Filter"), ("#home", "Show")):
        page.locator(choose).select_option(index=1)
        if button == "Filter" or not has_javascript:
            page.get_by_role("button", name=button).click()
        page.wait_for_url("**?*")
        assert page.locator(choose).input_value()
        page.go_back()
        page.wait_for_url("**/agents")
        assert page.locator(choose).input_value() == "", choose
    if has_javascript:  # as after a return to a page that the browser kept
        page.locator("#type").fill("Explore")
        page.evaluate(RESUMED)
        assert page.locator("#type").input_value() == ""
    context.close()


def test_only_a_view_that_stays_slow_reloads_less_often(page: Any) -> None:
    page.evaluate("clearTimeout(timer); clearTimeout(regular); later = () => {}")
    page.wait_for_function("!isLoading")
    pauses = []
    for secs in (0, 9, 9, 90, 90, 0):
        page.evaluate(
            f"""async () => {{
                let now = 0;
                performance.now = () => (now += {secs * 1000});
                await refresh();
            }}"""
        )
        pauses.append(page.evaluate("pause"))
    assert pauses == [200, 200, 45000, 45000, 60000, 200]


def test_a_slow_view_that_is_shown_again_waits_only_for_the_rest_of_its_pause(page: Any) -> None:
    page.evaluate("clearTimeout(timer); clearTimeout(regular)")
    page.wait_for_function("!isLoading")
    page.evaluate(
        """() => {
            pause = 60000;
            ended = performance.now() - 50000;
            timer = setTimeout(load, 60000); // of a change while the page was hidden
            const waits = (window.waits = []);
            later = (wait) => waits.push(wait);
            document.dispatchEvent(new Event("visibilitychange"));
            ended -= 50000;
            document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    first, second = page.evaluate("waits")
    assert 9000 < first <= 10000
    assert second == 200
    assert page.evaluate("timer") is None
