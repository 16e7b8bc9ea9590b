"""An open page reconnects by itself after a lost connection and after a killed stack."""

import json
import os
import select
import signal
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urljoin

import pytest

from hivepipe.web import process
from tests.browser_scene import Browser, expect, is_live, shows
from tests.conftest import CLI, Home, Writer, fire
from tests.installed import Installation, upgrade_to
from tests.payloads import SESSION_START
from tests.sandbox import Sandbox
from tests.web_scene import TOKEN, line_of, page_process


class Proxy:
    """A proxy between browser and page that can be closed and opened again on its port."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.sockets: list[socket.socket] = []
        self.port = 0

    def open(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        self.sockets.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listening.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                self.sockets += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def proxy(address: str) -> Iterator[Proxy]:
    made = Proxy(int(address.partition("/?")[0].rpartition(":")[2]))
    made.open()
    yield made
    made.close()


@pytest.mark.parametrize("has_workers", [True, False])
def test_a_lost_connection_is_restored(
    address: str,
    proxy: Proxy,
    browser: Browser,
    private_home: Home,
    writer: Writer,
    has_workers: bool,
) -> None:
    writer.start()
    script = "" if has_workers else "delete window.SharedWorker"  # as on Android
    page = browser.page(f"http://127.0.0.1:{proxy.port}/?{address.partition('?')[2]}", script)
    is_live(page)
    proxy.close()
    shows(page, "#live")("connection lost")
    fire("SessionStart", SESSION_START, private_home.env)
    proxy.open()
    is_live(page)
    expect(page.locator(".card")).to_have_count(1)


def test_the_page_continues_after_the_stack_was_killed_and_restarted(
    sandbox: Sandbox, browser: Browser
) -> None:
    sandbox.run("up", "-d")
    serving = sandbox.start("web", "--port", "0", "--no-open")
    assert serving.stdout
    page = browser.page(serving.stdout.readline().strip())
    sandbox.fire("s-1")
    expect(page.locator(".card")).to_have_count(1)
    sandbox.kill()  # all processes except the page
    sandbox.fire("s-2")
    sandbox.run("up", "-d")
    expect(page.locator(".card")).to_have_count(2)
    page.get_by_role("link", name="Queues").click()
    shows(page, "main")("high")
    serving.terminate()
    serving.communicate(timeout=30)


@pytest.mark.parametrize("has_workers", [True, False])
def test_a_page_does_not_call_a_hung_server_live(
    sandbox: Sandbox, browser: Browser, has_workers: bool
) -> None:
    serving = sandbox.start("web", "--port", "0", "--no-open")
    assert serving.stdout
    script = "" if has_workers else "delete window.SharedWorker"
    page = browser.page(serving.stdout.readline().strip(), script)
    is_live(page)
    serving.send_signal(signal.SIGSTOP)
    page.evaluate("silent = 300, hear('live')")
    shows(page, "#live")("connection lost")
    page.evaluate("silent = 20000")
    serving.send_signal(signal.SIGCONT)
    is_live(page)
    page.evaluate("hear('connection lost'), hear('changed')")  # many changes: no `alive` follows
    assert page.locator("#live").inner_text() == "live"
    serving.terminate()
    serving.communicate(timeout=30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_is_stopped_prints_no_error_about_an_open_page(
    private_home: Home, number: int
) -> None:
    with page_process(private_home, "--no-open", HIVEPIPE_WEB_TOKEN=TOKEN) as serving:
        said = {"Authorization": f"Bearer {TOKEN}"}
        asked = urllib.request.Request(urljoin(line_of(serving), "/events"), headers=said)
        with urllib.request.urlopen(asked, timeout=30) as stream:
            assert stream.readline() == b"event: alive\n"
            serving.send_signal(number)
            _, errors = serving.communicate(timeout=30)
        assert errors == ""


def test_a_page_says_why_it_is_not_up_to_date(address: str, browser: Browser) -> None:
    state, restarted = "#live", "server restarted: open the address that it printed"
    page = browser.page(address)
    is_live(page)

    def reload(status: int, kind: str, text: str) -> None:
        page.unroute("**/now")
        answer = {"status": status, "content_type": kind, "body": text}
        page.route("**/now", lambda route: route.fulfill(**answer))
        page.evaluate("later(0)")

    reload(500, "text/plain", "Internal Server Error")
    expect(page.locator(state)).to_have_text("not up to date: the server answers 500")
    expect(page.locator("h1")).to_have_text("Now")
    reload(502, "text/html", "<title>502</title><h1>Bad Gateway</h1>")  # of a proxy, such as nginx
    expect(page.locator(state)).to_have_text("not up to date: the server answers 502")
    assert page.title() == "Now · hivepipe"
    reload(404, "text/html", "<main><h1>Nothing to show</h1></main>")
    expect(page.locator("h1")).to_have_text("Nothing to show")
    is_live(page)
    reload(401, "text/plain", "open the address")
    expect(page.locator(state)).to_have_text(restarted)
    page.evaluate('hear("connection lost")')
    expect(page.locator(state)).to_have_text(restarted)
    page.unroute("**/now")
    page.evaluate('hear("live")')
    is_live(page)
    expect(page.locator("h1")).to_have_text("Now")


def test_a_page_goes_on_with_the_version_of_an_upgrade(
    private_home: Home, browser: Browser, tmp_path: Path
) -> None:
    with upgradable(private_home, tmp_path, "web", "--no-open") as (serving, code, packages):
        page = browser.page(line_of(serving))
        is_live(page)
        started = code / "web/process.py"
        old = started.read_text()
        started.write_text("import a_missing_dependency")
        upgrade_to("9.9.8", packages)
        with pytest.raises(subprocess.TimeoutExpired):
            serving.wait(timeout=5)
        started.write_text(old)
        for path, old, new in (
            ("pages/now.html", "<h1>Now</h1>", "<h1>{{ in_the_new_version }}</h1>"),
            ("app.py", '"view": name,', '"view": name, "in_the_new_version": "Now 9.9.9",'),
        ):
            file = code / "web" / path
            file.write_text(file.read_text().replace(old, new))
        upgrade_to("9.9.9", packages)
        expect(page.locator("h1")).to_have_text("Now 9.9.9")
        is_live(page)


def test_a_page_says_that_hivepipe_is_being_upgraded(
    private_home: Home, browser: Browser, tmp_path: Path
) -> None:
    with upgradable(private_home, tmp_path, "web", "--no-open") as (serving, code, packages):
        page = browser.page(line_of(serving))
        is_live(page)
        templates = (code / "web/pages").rename(tmp_path / "pages")
        metadata = packages / "hivepipe-1.0.0.dist-info/METADATA"
        metadata.rename(tmp_path / "METADATA")  # as while pip replaces the files
        for path in ("/skills", "/skills.json", "/events", "/queues/unknown/stack"):
            answer = page.request.get(urljoin(page.url, path))
            assert (answer.status, answer.headers["refresh"]) == (503, "3")
            assert "hivepipe is being upgraded" in answer.text()
        page.evaluate("later(0)")
        expect(page.locator("#live")).to_contain_text("hivepipe is being upgraded")
        expect(page.locator("h1")).to_have_text("Now")
        templates.rename(code / "web/pages")
        (tmp_path / "METADATA").rename(metadata)
        page.evaluate("later(0)")
        is_live(page)


def test_a_team_page_goes_on_with_the_version_of_an_upgrade(
    private_home: Home, tmp_path: Path
) -> None:
    env = {"HIVEPIPE_TEAM_PAGE": "postgresql://page@127.0.0.1:1/team?sslmode=disable"}
    words = ("team", "page", "--header", "X", "--proxy", "127.0.0.1")
    with upgradable(private_home, tmp_path, *words, **env) as (serving, code, packages):
        assert get(line_of(serving)) == "yes\n"
        file = code / "web/team_page/app.py"
        file.write_text(file.read_text().replace("yes", "the new version"))
        upgrade_to("9.9.9", packages)
        assert select.select([serving.stdout], [], [], 60)[0]
        assert get(line_of(serving)) == "the new version\n"


def get(base: str) -> str:
    with urllib.request.urlopen(urljoin(base, "/healthy"), timeout=30) as answer:
        return str(answer.read().decode())


def test_an_upgrade_waits_for_an_action_that_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []
    action = threading.Timer(0.3, lambda: done.append("action"))

    def serve(_app: object, listening: socket.socket) -> bool:
        action.start()
        listening.close()
        return True

    def exec_server(listening: socket.socket, **_words: object) -> None:
        listening.close()
        done.append("new version")

    reading, writing = os.pipe()
    os.write(writing, json.dumps({"token": TOKEN, "is_local": True}).encode())
    os.close(writing)
    monkeypatch.setattr(process, "serve", serve)
    monkeypatch.setattr(process, "exec_server", exec_server)
    monkeypatch.setattr(threading, "enumerate", lambda: [threading.current_thread(), action])
    process.main(reading, socket.socket().detach())
    assert done == ["action", "new version"]


@contextmanager
def upgradable(
    home: Home, folder: Path, *words: str, **env: str
) -> Iterator[tuple["subprocess.Popen[str]", Path, Path]]:
    """Run a command on a free port; yield its process, its code, and the folder of its metadata."""
    installation = Installation(folder)
    (packages,) = installation.folder.glob(".venv/lib/python3*/site-packages")
    upgrade_to("1.0.0", packages)
    command = [str(installation.bin / "python"), *CLI[1:], *words, "--port", "0"]
    running = subprocess.Popen(
        command, env=home.env | env, cwd=home.project, stdout=subprocess.PIPE, text=True
    )
    try:
        yield running, installation.folder / "hivepipe", packages
    finally:
        running.terminate()
        running.communicate(timeout=30)
        installation.end()
