"""Simulated open pages in a separate process. Each loads its view again after a change.

They behave as `live.js`, without the cost of a browser: a page is loaded 0.2 s after a change, or
after five times the duration of the last load.
"""

import http.client
import multiprocessing
import threading
import time
from multiprocessing.synchronize import Event as Signal

LATER_SECS, LATEST_SECS, LATER_THAN_A_LOAD = 0.2, 60.0, 5
LOOK_SECS = 0.1


class LivePages:
    """Simulated pages, open from `open` to `close`."""

    def __init__(self, place: str, token: str, paths: list[str]) -> None:
        """Set up; `paths` has the path of each page."""
        self._wanted = multiprocessing.Event()
        self._loads = multiprocessing.Value("q", 0)
        arguments = (place, token, paths, self._wanted, self._loads)
        self._process = multiprocessing.Process(target=_show, args=arguments, daemon=True)
        self._process.start()

    @property
    def loads(self) -> int:
        """Return how often a view was loaded."""
        return int(self._loads.value)

    def open(self) -> None:
        """Open all pages."""
        self._wanted.set()

    def close(self) -> None:
        """Close all pages."""
        self._wanted.clear()

    def end(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


def _show(place: str, token: str, paths: list[str], wanted: Signal, loads: object) -> None:
    threads = [
        threading.Thread(target=_follow, args=(place, token, path, wanted, loads)) for path in paths
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _follow(place: str, token: str, path: str, wanted: Signal, loads: object) -> None:
    """Follow the stream of changes, without end."""
    said = {"Authorization": f"Bearer {token}"}
    pause = LATER_SECS
    while wanted.wait():
        stream = http.client.HTTPConnection(place, timeout=LOOK_SECS)
        stream.request("GET", "/events", headers=said)
        while wanted.is_set():
            assert stream.sock
            try:
                has_changed = b"changed" in stream.sock.recv(65536)
            except TimeoutError:
                continue
            if has_changed:
                time.sleep(pause)
                began = time.monotonic()
                page = http.client.HTTPConnection(place)
                page.request("GET", path, headers=said)
                page.getresponse().read()
                page.close()
                took = time.monotonic() - began
                pause = min(max(LATER_SECS, LATER_THAN_A_LOAD * took), LATEST_SECS)
                with loads.get_lock():  # type: ignore[attr-defined]
                    loads.value += 1  # type: ignore[attr-defined]
        stream.close()
