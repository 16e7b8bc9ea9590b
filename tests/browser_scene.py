"""The page in a headless Chromium. This process serves it, unless a test starts a server."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
NARROW = {"width": 380, "height": 700}
SLOW_MS = 60_000  # the machine is shared
# Chromium's own pages for the address line take more than half of the processor time of a new
# context. The last list counts, so it repeats what of Playwright's list keeps Chromium silent.
WITHOUT = (
    *("WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
    *("AimEnabled", "HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable", "MediaRouter"),
    *("NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch"),
)
# Otherwise a process of its own draws in software as a graphics card would, which takes longer.
DRAWN = ("--disable-gpu", "--disable-gpu-rasterization", "--disable-software-rasterizer")
OPTIONS = ["--no-sandbox", *DRAWN, "--in-process-gpu", f"--disable-features={','.join(WITHOUT)}"]
expect = sync_api.expect
expect.set_options(timeout=SLOW_MS)


@contextmanager
def running_chromium() -> Iterator[Any]:
    """Run a headless Chromium. Playwright's loop would disturb those of other modules' tests."""
    if not CHROMIUM:
        pytest.skip("Debian's chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()


class Browser:
    """A user's browser without history; `console` is what its pages wrote there."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.console: list[str] = []

    def page(self, address: str = "", script: str = "", size: dict[str, int] | None = None) -> Any:
        """Open a page that runs a script first."""
        page = self.context.new_page()
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.on("dialog", lambda dialog: (self.console.append("a dialog"), dialog.dismiss()))
        if size:
            page.set_viewport_size(size)
        if script:
            page.add_init_script(script)
        if address:
            page.goto(address)
        return page


def is_live(page: Any) -> None:
    expect(page.locator("#live")).to_have_text("live")


def shows(page: Any, selector: str) -> Callable[..., None]:
    """Return a function that waits until an element of a page has a text."""
    return lambda text: expect(page.locator(selector)).to_contain_text(text)
