"""`hivepipe web` in a browser: no view has an error, and a new session appears by itself."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hivepipe.web.views import VIEWS
from tests.conftest import CLI, Home, Server, Writer, fire, until
from tests.integration.test_cli_listings import command
from tests.integration.test_failed import change, fail_agent_job
from tests.payloads import PERMISSION_REQUEST, SESSION_START
from tests.web_scene import SESSION, call, prompt, result

CHROMIUM = shutil.which("chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="Debian's chromium is not installed")


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium that is closed at the end."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def address(private_home: Home, redis_server: Server) -> Iterator[str]:
    process = subprocess.Popen(
        [*CLI, "web", "--port", "0", "--no-open"],
        env=private_home.env,
        cwd=private_home.project,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    yield process.stdout.readline().strip()
    process.terminate()
    process.communicate(timeout=30)


def test_each_view_loads_and_a_new_session_appears(
    address: str, private_home: Home, writer: Writer
) -> None:
    console: list[str] = []
    writer.start()
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 380, "height": 700})
        page.on("console", lambda message: console.append(message.text))
        page.on("pageerror", lambda error: console.append(str(error)))
        page.goto(address)
        for view in [*VIEWS, "now"]:
            page.goto(f"{address.partition('/?')[0]}/{view}")
            sync_api.expect(page.locator("#live")).to_have_text("live")
            assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert page.locator(".card").count() == 0
        fire("SessionStart", SESSION_START, private_home.env)
        page.wait_for_selector(".card")
    assert console == []


# Replaces desktop notifications, which a test cannot observe.
NOTICES = """
    window.notices = [];
    window.Notification = class {
        static permission = "default";
        static async requestPermission() { this.permission = "granted"; }
        constructor(title, { body }) { notices.push(`${title}: ${body}`); }
    };
"""


@pytest.mark.parametrize("is_on", [True, False])
def test_a_notification_is_shown_when_a_session_begins_to_wait(
    address: str, private_home: Home, writer: Writer, is_on: bool
) -> None:
    writer.start()
    fire("SessionStart", SESSION_START, private_home.env)
    with chromium() as browser:
        page = browser.new_page()
        page.add_init_script(NOTICES)
        page.goto(address)
        page.wait_for_selector(".card")
        if is_on:
            page.get_by_role("button", name="Notify me").click()
            sync_api.expect(page.locator("#notice")).to_have_text("Stop notifying me")
        page.locator(".card a").focus()
        fire("PermissionRequest", PERMISSION_REQUEST, private_home.env)
        page.wait_for_selector(".waits-for-you")
        assert page.evaluate("document.activeElement.matches('.card a')")
        notices = page.evaluate("notices")
    assert len(notices) == is_on
    assert all(notice.startswith("A session waits for you: ") for notice in notices)


def test_a_search_leads_to_the_turn_and_back(private_home: Home, address: str) -> None:
    console: list[str] = []
    command(private_home, "init", "--local", "--no-probe")
    folder = private_home.root / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)
    where = str(private_home.project).encode()
    lines_of_session = [prompt(1, "Mend the cart"), call(2, "Bash", "t1", command="ls cart")]
    lines_of_session += [result(4, "t1", "no such cart", failed=True), prompt(90, "Thank you")]
    lines = b"".join(lines_of_session).replace(b"/home/ana/shop", where)
    (folder / f"{SESSION}.jsonl").write_bytes(lines)
    command(private_home, "archive", "sweep")
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 380, "height": 700})
        page.on("console", lambda message: console.append(message.text))
        page.on("pageerror", lambda error: console.append(str(error)))
        page.goto(address)
        page.get_by_role("link", name="Search").click()
        page.locator("#q").fill("such cart")
        page.keyboard.press("Enter")
        link = page.locator(".hits h3 a").first  # a link within a text is also underlined
        sync_api.expect(link).to_have_css("text-decoration-line", "underline")
        page.locator("a.found").first.click()
        sync_api.expect(page.locator("#open .hit")).to_contain_text("no such cart")
        page.get_by_role("link", name="The whole session").click()
        page.locator("svg a:has(rect.failure)").press("Enter")
        sync_api.expect(page.locator("#p2[open]")).to_be_visible()
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        page.locator("svg a:has(rect.quarter)").last.press("Enter")
        sync_api.expect(page.locator("article.user")).to_have_count(1)
        page.go_back()
        sync_api.expect(page.locator("article.user")).to_have_count(2)
    assert console == []


def test_a_failed_job_is_retried_by_a_click(
    address: str, private_home: Home, redis_server: Server, writer: Writer
) -> None:
    console: list[str] = []
    swarm = fail_agent_job(private_home, redis_server, writer)
    change(private_home, "INSERT INTO swarms (id, name) VALUES (?, 'shop')", swarm)
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 380, "height": 700})
        page.on("console", lambda message: console.append(message.text))
        page.goto(address)
        page.get_by_role("link", name="Queues").click()
        page.get_by_role("checkbox").check()
        fire("SessionStart", SESSION_START, private_home.env)  # the page reloads its data
        page.get_by_role("button", name="Retry ticked").click()
        sync_api.expect(page.locator("h1")).to_contain_text("Retry 1 failed job of")
        page.get_by_role("button", name="Retry 1").click()
        lines_of_session = page.locator("section [role=status]")
        sync_api.expect(lines_of_session).to_have_text("Sent back to the queues: 1 of 1.")
        until(lambda: private_home.count("agents") == 1, "not written")
    assert console == []


def test_arrow_keys_choose_a_project_and_a_button_shows_it(address: str) -> None:
    with chromium() as browser:
        page = browser.new_page()
        page.goto(address)
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


def test_an_update_keeps_the_selection_and_open_details(
    address: str, private_home: Home, writer: Writer
) -> None:
    folder = private_home.root / ".claude" / "projects" / "-shop"
    folder.mkdir(parents=True)
    command(private_home, "init", "--local", "--no-probe")
    lines_of_session = [prompt(1, "Mend the cart"), call(2, "Bash", "t1", command="ls cart")]
    lines_of_session += [result(4, "t1", "no such cart", failed=True), prompt(90, "Thank you")]
    lines = b"".join(lines_of_session).replace(
        b"/home/ana/shop", str(private_home.project).encode()
    )
    (folder / f"{SESSION}.jsonl").write_bytes(lines)
    command(private_home, "archive", "sweep")
    writer.start()
    with chromium() as browser:
        page = browser.new_page()
        page.goto(address)
        base = address.partition("/?")[0]
        found = page.request.get(f"{base}/search.json?q=cart").json()["hits"]
        page.goto(f"{base}/session/{found[0]['home']}/{SESSION}")
        page.locator("details.piece summary").first.click()
        page.evaluate("getSelection().selectAllChildren(document.querySelector('article pre'))")
        with page.expect_response(f"**/{SESSION}"):
            fire("SessionStart", SESSION_START | {"session_id": "another"}, private_home.env)
        page.wait_for_timeout(300)
        assert page.evaluate("getSelection().toString()") == "Mend the cart"
        assert page.locator("details.piece[open]").count() == 1
