"""axe-core finds no serious violation on any view, in light and dark, narrow and wide."""

from pathlib import Path

import pytest

from hivepipe.web.views import VIEWS
from tests.archive_scene import SESSION
from tests.conftest import Home, Server
from tests.integration.test_failed import add_failed_job
from tests.integration.test_web_browser import address, chromium, pytestmark
from tests.real.fetch import NotFetchedError, fetched_axe
from tests.web_scene import record_hostile

__all__ = ["address", "pytestmark"]
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def axe() -> Path:
    try:
        return fetched_axe()
    except NotFetchedError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("width", [380, 1600])
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_no_view_has_a_serious_violation(
    axe: Path, address: str, private_home: Home, redis_server: Server, colours: str, width: int
) -> None:
    record_hostile(private_home.database.parent)
    add_failed_job(redis_server, "dead", b"rubbish", description="insert_agent a1")
    base = address.partition("/?")[0]
    with chromium() as browser:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=colours, bypass_csp=True
        )
        page = context.new_page()
        page.add_init_script(path=axe)
        page.goto(address)
        home = page.request.get(f"{base}/now.json").json()["sessions"][0]["home"]
        found = {}
        for view in [*VIEWS, f"session/{home}/{SESSION}", "search?q=script"]:
            page.goto(f"{base}/{view}")
            results = page.evaluate("axe.run()")
            found[view] = [
                (each["id"], [node["html"][:200] for node in each["nodes"]][:3])
                for each in results["violations"]
                if each["impact"] in SERIOUS
            ]
    assert {view: faults for view, faults in found.items() if faults} == {}
