"""axe-core finds no serious violation on any view, and a printed view cuts no table.

Each view is shown in light colours on a wide page and in dark ones on a narrow page.
"""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hivepipe.db.database import Database
from hivepipe.web.views import VIEWS
from tests.archive_scene import SESSION
from tests.browser_scene import Browser, is_live
from tests.conftest import Home, Server
from tests.integration.test_failed import add_failed_job
from tests.real.fetch import NotFetchedError, fetched_axe
from tests.web_scene import AT, archive_hostile_session, insert, insert_usage, record_hostile

SERIOUS = ("serious", "critical")
TARGET = 24  # pixels: the least height of a link
# The rule is of WCAG 2.2, off by default.
CHECK = "axe.run({rules: {'target-size': {enabled: true}}, resultTypes: ['violations']})"
ARN = f"arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/{'a' * 40}"
BLACK = "rgb(28, 30, 33)"  # the text on paper, also of a page that is dark on the screen
UNPRINTED = "header, button, input, select"
CUT = "each => each.filter(it => getComputedStyle(it).overflowX != 'visible').length"


@pytest.fixture(scope="module")
def axe() -> Path:
    try:
        return fetched_axe()
    except NotFetchedError as error:
        pytest.skip(str(error))


def record_summary(database: Path) -> None:
    """Record a summary that a search finds."""
    texts = dict.fromkeys(("provider", "model", "reason", "harness"), "")
    texts |= dict.fromkeys(("key_learnings", "files", "open_ends"), "[]")
    with closing(Database(database)) as db:
        insert(db, "summaries", session_id=SESSION, state="s", made_at=AT, kind="plain",
               summary="the script of the shop", requests=0, **texts)  # fmt: skip


def test_no_view_has_a_serious_violation_and_no_printed_one_cuts_a_table(
    axe: Path, address: str, chromium: Any, private_home: Home, redis_server: Server
) -> None:
    record_hostile(private_home.database.parent)
    archive_hostile_session(private_home.root)
    record_summary(private_home.database)
    add_failed_job(redis_server, "dead", b"rubbish", description="insert_agent a1")
    base = address.partition("/?")[0]
    page = chromium.new_page(bypass_csp=True)
    page.add_init_script(path=axe)
    page.goto(address)
    home = page.request.get(f"{base}/now.json").json()["sessions"][0]["home"]
    found = {}
    for view in [*VIEWS, f"session/{home}/{SESSION}", "search?q=script"]:
        page.goto(f"{base}/{view}")
        for colours, width in (("light", 1600), ("dark", 380)):
            page.emulate_media(color_scheme=colours)
            page.set_viewport_size({"width": width, "height": 900})
            found[view, colours] = [
                (each["id"], [node["html"][:200] for node in each["nodes"]][:3])
                for each in page.evaluate(CHECK)["violations"]
                if each["impact"] in SERIOUS
            ]
        page.emulate_media(media="print")
        assert page.eval_on_selector_all(".wide", CUT) == 0
        assert page.evaluate("getComputedStyle(document.body).color") == BLACK
        assert page.locator(UNPRINTED).filter(visible=True).count() == 0
        assert page.locator("form.failed td").last.is_visible() or view != "queues"
        page.emulate_media(media="screen")
    assert page.locator(".found").first.bounding_box()["height"] >= TARGET
    page.close()
    assert {case: faults for case, faults in found.items() if faults} == {}


def test_a_keyboard_passes_over_the_bars_of_a_time_line(
    address: str, chromium: Any, private_home: Home
) -> None:
    record_hostile(private_home.database.parent)
    archive_hostile_session(private_home.root)
    page = chromium.new_page()
    page.goto(address)
    base = address.partition("/?")[0]
    home = page.request.get(f"{base}/now.json").json()["sessions"][0]["home"]
    page.goto(f"{base}/session/{home}/{SESSION}")
    assert page.locator(".lanes a").count()
    link = page.locator("section .skip")
    link.focus()
    assert link.bounding_box()["x"] > 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.lanes, header') === null")
    page.close()


def test_a_number_stays_behind_a_name_that_is_written_from_right_to_left(
    address: str, chromium: Any, private_home: Home
) -> None:
    record_hostile(private_home.database.parent)
    archive_hostile_session(private_home.root)
    page = chromium.new_page()
    page.goto(address)
    page.goto(f"{address.partition('/?')[0]}/search?q=cart")
    name, number = page.locator(".facets li").first.evaluate(
        # In one step, because the page replaces its content after a change.
        """item => {
            const name = item.querySelector("a");
            name.textContent = "\u05e9\u05dc\u05d5\u05dd";
            return [name, item.querySelector(".quiet")].map(
                each => each.getBoundingClientRect().x);
        }"""
    )
    assert number > name
    page.close()


def test_a_long_name_of_a_model_pushes_no_cost_out_of_the_window(
    address: str, chromium: Any, private_home: Home
) -> None:
    record_hostile(private_home.database.parent)
    with closing(Database(private_home.database)) as db:
        insert_usage(db, session_id=SESSION, message_id="m2", model=ARN, cache_read=10**9)
    page = chromium.new_page(viewport={"width": 1280, "height": 800})
    page.goto(address)
    page.goto(f"{address.partition('/?')[0]}/costs?all=1")
    assert ARN in page.locator(".wide").inner_text()
    assert page.eval_on_selector(".wide", "each => each.scrollWidth - each.clientWidth") == 0
    page.close()


def test_combining_marks_cover_no_other_text(address: str, browser: Browser) -> None:
    page = browser.page(address)
    is_live(page)
    navigation = page.locator("nav")
    before = navigation.screenshot()
    for each in ("h1", "main > p"):
        page.locator(each).first.evaluate(
            "it => { it.textContent = `${'o'.repeat(24)}${'\\u0300'.repeat(400)}`; }"
        )
        assert navigation.screenshot() == before, each
