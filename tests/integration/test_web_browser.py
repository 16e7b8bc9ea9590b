"""`hivepipe web` in a browser: no view has an error, and a new session appears by itself."""

from itertools import count
from typing import Any

import pytest

from hivepipe.web.views import VIEWS
from tests.browser_scene import NARROW, Browser, expect, is_live, shows
from tests.conftest import Home, Writer, fire, until
from tests.integration.test_cli_listings import command
from tests.payloads import PERMISSION_REQUEST, SESSION_START
from tests.web_scene import SESSION, archive_hostile_session, call, prompt, record_hostile, result


def test_each_view_loads_and_a_new_session_appears(
    address: str, browser: Browser, private_home: Home, writer: Writer
) -> None:
    writer.start()
    page = browser.page(address, size=NARROW)
    for view in [*VIEWS, "now"]:
        page.goto(f"{address.partition('/?')[0]}/{view}")
        is_live(page)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert page.locator(".card").count() == 0
    fire("SessionStart", SESSION_START, private_home.env)
    page.wait_for_selector(".card")
    assert browser.console == []


def test_a_page_without_javascript_says_that_it_is_not_live(address: str, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address)
    assert page.locator("#live").inner_text() == "not live: JavaScript is off"
    context.close()


def test_more_pages_than_connections_of_one_browser_are_live_at_once(
    address: str, browser: Browser, private_home: Home, writer: Writer
) -> None:
    writer.start()
    pages = [browser.page(address) for _ in range(8)]  # a browser has six connections to a host
    for page in pages:
        is_live(page)
    fire("SessionStart", SESSION_START, private_home.env)
    for page in pages:
        expect(page.locator(".card")).to_have_count(1)
    assert browser.console == []


def test_a_change_before_the_stream_is_open_is_shown(
    address: str, browser: Browser, private_home: Home, writer: Writer
) -> None:
    writer.start()
    page = browser.page(script="delete window.SharedWorker")

    def open_late(route: Any) -> None:
        fire("SessionStart", SESSION_START, private_home.env)
        until(lambda: private_home.count("sessions"), "no session was stored")
        route.continue_()

    page.route("**/events", open_late)
    page.goto(address)
    expect(page.locator(".card")).to_have_count(1, timeout=20_000)


# Replaces desktop notifications, which a test cannot observe.
NOTICES = """
    window.notices = [];
    window.Notification = class {
        static permission = "default";
        static async requestPermission() { this.permission = "granted"; }
        constructor(title, { body }) { notices.push(`${title}: ${body}`); }
    };
"""


def test_a_notification_is_shown_when_a_session_begins_to_wait(
    address: str, browser: Browser, private_home: Home, writer: Writer
) -> None:
    writer.start()
    page = browser.page(address, NOTICES)
    for number in (1, 2):
        session = {"session_id": f"s-{number}"}
        fire("SessionStart", SESSION_START | session, private_home.env)
        expect(page.locator(".card")).to_have_count(number)
        if number == 2:
            page.get_by_role("button", name="Notify me").click()
            shows(page, "#notice")("Stop notifying me")
            # Beside a changing name, "pressed" would say the opposite.
            assert page.locator("#notice").get_attribute("aria-pressed") is None
        page.locator(".card a").first.focus()
        fire("PermissionRequest", PERMISSION_REQUEST | session, private_home.env)
        expect(page.locator(".waits-for-you")).to_have_count(number)
        assert page.evaluate("document.activeElement.matches('.card a')")
        notices = page.evaluate("notices")
        assert len(notices) == number - 1  # the first session waited before the click
    assert notices[0].startswith("A session waits for you: ")


@pytest.fixture
def archived(private_home: Home) -> Home:
    """A home with an archived session of two prompts and a failed call."""
    command(private_home, "init", "--local", "--no-probe")
    folder = private_home.root / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)
    lines = [prompt(1, "Mend the cart"), call(2, "Bash", "t1", command="ls cart")]
    lines += [result(4, "t1", "no such cart", failed=True), prompt(90, "Thank you")]
    where = str(private_home.project).encode()
    text = b"".join(lines).replace(b"/home/ana/shop", where)
    (folder / f"{SESSION}.jsonl").write_bytes(text)
    command(private_home, "archive", "sweep")
    return private_home


@pytest.mark.usefixtures("archived")
def test_a_search_leads_to_the_turn_and_back(address: str, browser: Browser) -> None:
    page = browser.page(address, size=NARROW)
    page.get_by_role("link", name="Search").click()
    page.locator("#q").fill("such cart")
    page.keyboard.press("Enter")
    link = page.locator(".hits h3 a").first  # a link within a text is also underlined
    expect(link).to_have_css("text-decoration-line", "underline")
    expect(page.locator(".facets a").first).to_have_css("text-decoration-line", "underline")
    page.locator("a.found").first.click()
    shows(page, "#open .hit")("no such cart")
    page.get_by_role("link", name="The whole session").click()
    page.locator("svg a:has(rect.failure)").press("Enter")
    expect(page.locator("#p2[open]")).to_be_visible()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    page.locator("svg a:has(rect.quarter)").last.press("Enter")
    expect(page.locator("article.user")).to_have_count(1)
    page.go_back()
    expect(page.locator("article.user")).to_have_count(2)
    assert browser.console == []


def test_arrow_keys_choose_a_project_and_a_button_shows_it(address: str, browser: Browser) -> None:
    page = browser.page(address)
    page.locator("#home").focus()
    page.keyboard.press("ArrowDown")
    key = page.locator("#home").input_value()
    assert key
    assert page.url.endswith("/now")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/now?home={key}")
    page.locator("#home").select_option("")  # as by a click
    page.wait_for_url("**/now?home=")


def test_an_update_keeps_open_details_and_equal_content(
    archived: Home, address: str, browser: Browser, writer: Writer
) -> None:
    writer.start()
    page = browser.page(address)
    base = address.partition("/?")[0]
    found = page.request.get(f"{base}/search.json?q=cart").json()["hits"]
    page.goto(f"{base}/session/{found[0]['home']}/{SESSION}")
    is_live(page)
    page.locator("details.piece summary").first.click()
    page.locator("main").evaluate("each => { each.isKept = true; }")
    with page.expect_response(f"**/{SESSION}"):
        fire("SessionStart", SESSION_START | {"session_id": "another"}, archived.env)
    page.wait_for_timeout(300)
    assert page.locator("main").evaluate("each => each.isKept")
    assert page.locator("details.piece[open]").count() == 1


UPDATES = 10


def answer_alike(page: Any, address: str) -> None:
    """Answer each request for a view with the same content, so that only a number changes."""
    text, numbers = page.request.get(address).text(), count()

    def answer(route: Any) -> None:
        body = text.replace("<h1>", f"<h1 data-update='{next(numbers)}'>")
        route.fulfill(body=body, content_type="text/html")

    page.route(address, answer)


def updated_nodes(page: Any, devtools: Any) -> int:
    """Update a view some times; return how many DOM nodes the browser keeps then."""
    before = page.locator("h1").get_attribute("data-update")
    for _ in range(UPDATES):
        page.evaluate("load()")
    assert int(page.locator("h1").get_attribute("data-update")) >= int(before) + UPDATES
    kept = []
    for _ in range(3):  # a collection may leave what the last update has just replaced
        devtools.send("HeapProfiler.collectGarbage")
        metrics = devtools.send("Performance.getMetrics")["metrics"]
        kept += [each["value"] for each in metrics if each["name"] == "Nodes"]
    return min(kept)


def test_updates_of_equal_size_leave_no_nodes_behind(
    address: str, browser: Browser, private_home: Home
) -> None:
    record_hostile(private_home.database.parent)
    archive_hostile_session(private_home.root)
    page = browser.page(address)
    base = address.partition("/?")[0]
    home = page.request.get(f"{base}/now.json").json()["sessions"][0]["home"]
    devtools = browser.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    for view in [*VIEWS, f"session/{home}/{SESSION}", "search?q=cart"]:
        answer_alike(page, f"{base}/{view}")
        page.goto(f"{base}/{view}")
        before = updated_nodes(page, devtools)
        assert updated_nodes(page, devtools) < before + UPDATES, view
