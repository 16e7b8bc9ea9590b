"""RQ's own view, `/metrics` and `/status.json` need the token, and no code of a job runs."""

import base64
import json
import re
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPResponse
from typing import Any
from urllib.parse import quote

import psutil  # type: ignore[import-untyped]
import pytest
from prometheus_client.parser import text_string_to_metric_families

from hivepipe.home import short_hash
from hivepipe.monitor.metrics import _without_effect
from tests.conftest import CLI, Home, Server, Writer, fire, until
from tests.integration.test_restricted_rq import add_hostile_job
from tests.outcome import outcome_of
from tests.payloads import SESSION_START
from tests.web_scene import TOKEN, line_of, page_process


class Browser:
    """A client of a page that keeps its cookie."""

    pid: int  # of the process that serves the page

    def __init__(self, address: str, home: Home) -> None:
        self.base, _, self.query = address.partition("?")
        self.rq = f"rq/{short_hash(str(home.path))}"
        self.cookie = ""

    def fetch(self, path: str = "", method: str = "GET", **headers: str) -> tuple[int, str]:
        """Return status and text without following redirects."""
        all_headers = headers | ({"Cookie": self.cookie} if self.cookie else {})
        request = urllib.request.Request(self.base + path, headers=all_headers, method=method)
        try:
            with _OPENER.open(request, timeout=30) as answer:
                return self._read(answer)
        except urllib.error.HTTPError as error:
            with error:
                return self._read(error)  # type: ignore[arg-type]

    def _read(self, answer: HTTPResponse) -> tuple[int, str]:
        given = answer.headers.get("Set-Cookie", "")
        self.cookie = given.partition(";")[0] or self.cookie
        self.headers = answer.headers
        return answer.status, answer.read().decode()

    def enter(self) -> None:
        assert self.fetch(f"?{self.query}")[0] == 302


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))


@pytest.fixture
def browser(address: str, private_home: Home) -> Browser:
    """A client that has shown the token to a page of this process."""
    made = Browser(address, private_home)
    made.enter()
    return made


@pytest.fixture
def open_page(private_home: Home, redis_server: Server) -> Iterator[Callable[..., Browser]]:
    """Start processes of the page."""
    with ExitStack() as stack:

        def start(**env: str) -> Browser:
            process = stack.enter_context(page_process(private_home, "--no-open", **env))
            made = Browser(line_of(process), private_home)
            made.pid = process.pid
            return made

        yield start


def test_without_the_token_every_request_is_refused(open_page: Callable[..., Browser]) -> None:
    browser = open_page()
    assert browser.base.startswith("http://127.0.0.1:")
    assert len(browser.query) > 30
    pages = ("0/view/jobs", "static/css/main.css")
    for path in ("metrics", "status.json", *(f"{browser.rq}/{page}" for page in pages)):
        assert browser.fetch(path)[0] == 401
    assert browser.fetch("metrics", Authorization="Bearer wrong")[0] == 401
    browser.enter()
    assert browser.fetch("status.json", Host="evil.example")[0] == 403
    assert browser.fetch(browser.rq)[0] == 302
    status, page = browser.fetch(f"{browser.rq}/0/view/jobs")
    assert status == 200
    assert "queue" in page.lower()
    styles = re.findall(r'href="/([^"]+\.css)"', page)
    assert len(styles) == 2
    assert {browser.fetch(style)[0] for style in styles} == {200}
    assert browser.fetch(f"rq/{'0' * 16}/")[0] == 404
    assert browser.fetch(f"status.json?home={'0' * 16}")[0] == 404
    assert browser.query.removeprefix("token=") not in page
    listening = {
        c.laddr.ip for c in psutil.Process(browser.pid).net_connections() if c.status == "LISTEN"
    }
    assert listening == {"127.0.0.1"}


def test_the_token_can_be_set_and_otherwise_differs_per_start(
    open_page: Callable[..., Browser],
) -> None:
    for name in ("HIVEPIPE_WEB_TOKEN", "HIVEPIPE_DASHBOARD_TOKEN"):
        named = open_page(**{name: TOKEN})
        assert named.query == f"token={TOKEN}"
        assert named.fetch("status.json", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert open_page().query != open_page().query


def test_two_pages_do_not_end_each_others_sessions(open_page: Callable[..., Browser]) -> None:
    first, second = open_page(), open_page()
    first.enter()
    second.enter()
    # cookies do not distinguish ports
    first.cookie = second.cookie = f"{first.cookie}; {second.cookie}"
    assert first.fetch("status.json")[0] == second.fetch("status.json")[0] == 200
    assert first.cookie.partition("=")[0] != second.cookie.rpartition("; ")[2].partition("=")[0]


def test_finished_jobs_are_those_of_the_last_minute(redis_server: Server, browser: Browser) -> None:
    with redis_server.client() as client:
        client.sadd("rq:queues", "rq:queue:medium")
        client.zadd("rq:finished:medium", {"old": time.time() - 1, "new": time.time() + 60})
    (queue,) = json.loads(browser.fetch(f"{browser.rq}/0/data/queues.json")[1])["queues"]
    assert queue["finished_job_registry_count"] == 1


def test_no_code_of_a_job_runs_and_no_job_is_deleted(
    private_home: Home, redis_server: Server, browser: Browser
) -> None:
    add_hostile_job(redis_server, private_home, "dead", description="looks harmless")
    listed = json.loads(browser.fetch(f"{browser.rq}/0/data/jobs/medium/failed/8/asc/1.json")[1])
    assert [job["id"] for job in listed["jobs"]] == ["dead"]
    browser.fetch(f"{browser.rq}/0/data/job/dead.json")
    browser.fetch(f"{browser.rq}/0/view/job/dead")
    changes = ("job/dead/delete", "job/dead/requeue", "requeue/medium", "queue/medium/compact")
    for path in (*changes, "queue/medium/failed/empty"):
        assert browser.fetch(f"{browser.rq}/{path}", "POST", Origin=browser.base[:-1])[0] == 405
    status, text = browser.fetch(f"{browser.rq}/requeue/medium")  # a change by GET
    assert (status, "Queues" in text) == (405, True)
    with redis_server.client() as client:
        assert client.zscore("rq:failed:medium", "dead") is not None
    assert not (private_home.root / "ran").exists()


def test_the_metrics_agree_with_status(
    private_home: Home, writer: Writer, browser: Browser
) -> None:
    writer.start()
    fire("SessionStart", SESSION_START, private_home.env)

    def both() -> tuple[dict[str, Any], dict[tuple[str, str], float]]:
        families = text_string_to_metric_families(browser.fetch("metrics")[1])
        samples = {
            (sample.name, next(iter(sample.labels.values()), "")): sample.value
            for family in families
            for sample in family.samples
        }
        return json.loads(browser.fetch("status.json")[1]), samples

    started = ("hivepipe_operations_total", "start_session")
    until(lambda: started in both()[1], "not stored")
    report, metrics = both()
    assert {*report} == {*json.loads(private_home.command("status", "--json", expect=None))}
    assert metrics["hivepipe_redis_up", ""] == 1
    assert metrics["hivepipe_healthy", ""] == report["healthy"]
    assert metrics["hivepipe_jobs_accepted_total", ""] == report["accounts"]["accepted"]
    assert metrics["hivepipe_jobs_retried_total", ""] == report["retried"] == 0
    assert metrics["hivepipe_jobs_done_total", ""] == report["accounts"]["done"]
    assert metrics[started] == 1
    assert metrics["hivepipe_workers", "high"] == 1
    assert metrics["hivepipe_workers", "slow"] == 0
    for queue, count in report["queues"].items():
        assert metrics["hivepipe_queue_length", queue] == count


def test_updates_without_effect_are_labelled_by_reason_and_operation() -> None:
    counters = {"zero_rows:update_checkpoint": 3, "no_session:insert_log": 1, "dropped:events": 2}
    families = _without_effect(counters)
    samples = {(it.name, *it.labels.values()): it.value for each in families for it in each.samples}
    assert samples == {
        ("hivepipe_without_effect_total", "zero_rows", "update_checkpoint"): 3,
        ("hivepipe_without_effect_total", "no_session", "insert_log"): 1,
        ("hivepipe_dropped_total", "events"): 2,
    }


def test_a_port_in_use_is_reported_in_one_line(
    private_home: Home, open_page: Callable[..., Browser]
) -> None:
    taken = open_page().base.rpartition(":")[2].strip("/")
    done = outcome_of(
        [*CLI, "web", "--no-open", "--port", taken], private_home.env, private_home.project
    )
    assert done.returncode == 1
    assert done.stderr == f"hivepipe: cannot listen on 127.0.0.1:{taken}: Address already in use\n"


MARKUP = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>'&"
PAGES = ("", "0/view/workers", "0/view/jobs/medium/failed/8/asc/1", "0/view/job/dead")


def add_markup(server: Server) -> None:
    """Add a failed job, a worker and a queue with markup in every field."""
    reason = base64.b64encode(zlib.compress(MARKUP.encode()))
    fields = {
        "data": zlib.compress(b'["hivepipe.run_job.run", null, ["x"], {}]'),
        "status": "failed",
        "description": MARKUP,
        "origin": MARKUP,
        "exc_info": zlib.compress(MARKUP.encode()),
        "created_at": "2026-01-10T00:00:00.000000Z",
        "ended_at": "2026-01-10T00:00:00.000000Z",
    }
    with server.client() as client:
        client.hset("rq:job:dead", mapping=fields)  # type: ignore[arg-type]
        client.zadd("rq:failed:medium", {"dead": time.time() + 900})
        client.xadd("rq:results:dead", {"type": 2, "exc_string": reason})
        client.sadd("rq:queues", "rq:queue:medium", f"rq:queue:{MARKUP}")
        client.sadd("rq:workers", f"rq:worker:{MARKUP}")
        worker = {"birth": "2026-01-10T00:00:00.000000Z", "queues": MARKUP, "version": MARKUP}
        client.hset(f"rq:worker:{MARKUP}", mapping=worker)


def test_pages_escape_data_and_have_a_strict_policy(redis_server: Server, browser: Browser) -> None:
    add_markup(redis_server)
    nonces = set()
    odd = quote(MARKUP.replace("/", ""), safe="")
    for path in (*PAGES, f"0/view/jobs/{odd}/failed/8/asc/1"):
        status, page = browser.fetch(f"{browser.rq}/{path}")
        assert status == 200
        policy = browser.headers["Content-Security-Policy"]
        assert "unsafe-inline" not in policy
        (nonce,) = set(re.findall(r"'nonce-([^']+)'", policy))
        nonces.add(nonce)
        scripts = re.findall(r"<script([^>]*)>", page)
        assert scripts
        assert all(f'nonce="{nonce}"' in each for each in scripts)
        assert not re.search(r"\sstyle=|\son\w+=\"|<%=", page)
        assert "<img src=x" not in page
    assert len(nonces) == len(PAGES) + 1  # each response has a new nonce


def test_without_redis_the_view_reports_it(browser: Browser, redis_server: Server) -> None:
    assert browser.fetch(f"{browser.rq}/")[0] == 200
    redis_server.end()
    for page in ("", "0/view/jobs", "0/data/queues.json"):
        status, text = browser.fetch(f"{browser.rq}/{page}")
        assert (status, text[:20]) == (503, "no Redis answers: th")
