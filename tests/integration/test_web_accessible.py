"""axe-core finds no serious violation on any view, in light and wide or dark and narrow."""

from pathlib import Path
from typing import Any

import pytest

from hivepipe.web.views import VIEWS
from tests.archive_scene import SESSION
from tests.browser_scene import address, chromium, pytestmark
from tests.conftest import Home, Server
from tests.integration.test_failed import add_failed_job
from tests.real.fetch import NotFetchedError, fetched_axe
from tests.web_scene import record_hostile

__all__ = ["address", "chromium", "pytestmark"]
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def axe() -> Path:
    try:
        return fetched_axe()
    except NotFetchedError as error:
        pytest.skip(str(error))


def test_no_view_has_a_serious_violation(
    axe: Path, address: str, chromium: Any, private_home: Home, redis_server: Server
) -> None:
    record_hostile(private_home.database.parent)
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
                for each in page.evaluate("axe.run()")["violations"]
                if each["impact"] in SERIOUS
            ]
    page.close()
    assert {case: faults for case, faults in found.items() if faults} == {}
