"""The numbers of every view equal those of the commands and of SQL on the same home.

The data are one day of hooks with a stack and a page: three sessions, of which one ended.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import Request, urlopen

import pytest
import redis

from hivepipe.queue import latencies
from tests.conftest import fire, until
from tests.payloads import (
    AGENT,
    FAILED_BASH,
    FAILED_SKILL,
    PERMISSION_REQUEST,
    POST_AGENT_COMPLETED,
    POST_BASH,
    POST_EDIT,
    POST_SKILL,
    PRE_AGENT,
    PRE_BASH,
    PRE_EDIT,
    SESSION,
    SESSION_END,
    SESSION_START,
    STOP,
    SUBAGENT_START,
    SUBAGENT_STOP,
    USER_PROMPT_SUBMIT,
    changed,
)
from tests.sandbox import Sandbox, new_sandbox
from tests.web_scene import call, prompt, result

Numbers = dict[str, Any]
ENDED, WAITING = "e0000000-0000-4000-8000-000000000001", "f0000000-0000-4000-8000-000000000002"
STATES = {"active": "works", "waiting": "waits for you", "ended": "ended"}
RUN_TIMES = {"processes", "workers"}  # run times, which grow
STATUS_FIELDS = {
    "accounts",
    "operations",
    "queues",
    "latencies",
    "hook_times",
    "alerts",
    "condition",
}
# The page with the findings of doctor and the disk use of the moment
PAGE = """
from hivepipe.web import background_cache
background_cache.KEPT_SECS = background_cache._SHARE = 0
from hivepipe.cli.main import main
main()
"""
# USD at the list prices of the one model, per million tokens
DOLLARS = "round((5.0 * sum(input) + 25.0 * sum(output)) / 1e6, 6)"
EVENTS = (
    *(SESSION_START, USER_PROMPT_SUBMIT, PRE_EDIT, POST_EDIT, PRE_BASH, POST_BASH),
    *(changed(each, tool_use_id="t-2") for each in (PRE_BASH, FAILED_BASH)),
    *(PRE_AGENT, SUBAGENT_START, SUBAGENT_STOP, POST_AGENT_COMPLETED, POST_SKILL, FAILED_SKILL),
    changed(SUBAGENT_START, agent_id="b0000000000000002", agent_type="Plan"),
    *(changed(each, session_id=WAITING) for each in (SESSION_START, PERMISSION_REQUEST)),
    *(changed(each, session_id=ENDED) for each in (SESSION_START, POST_EDIT, STOP, SESSION_END)),
)


@dataclass(frozen=True)
class Day:
    """The home after the day, read by page, commands and SQL."""

    sandbox: Sandbox
    address: str
    token: str

    def page(self, path: str) -> Numbers:
        asked = Request(f"{self.address}{path}", headers={"Authorization": f"Bearer {self.token}"})
        with urlopen(asked, timeout=30) as answer:
            return dict(json.load(answer))

    def output(self, *words: str) -> Numbers:
        return dict(json.loads(self.sandbox.done(*words, "--json").stdout))

    def rows(self, sql: str, database: str = "hive.db") -> list[tuple[Any, ...]]:
        """Query a database of the home over a separate connection."""
        path = quote(str(self.sandbox.home / database))
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as asked:
            return asked.execute(sql).fetchall()

    def page_and_output(self, path: str, *words: str) -> tuple[Numbers, Numbers]:
        """Return the JSON of a view's only stack and of a command, while nothing changes."""
        for _ in range(10):
            before = self.output(*words)
            (page,) = self.page(path)["stacks"]
            after = self.output(*words)
            if common(before, after, must=False):
                return page, after
        pytest.fail("the stack is never idle")

    def redis(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=self.sandbox.socket)


@pytest.fixture(scope="module")
def day() -> Iterator[Day]:
    with new_sandbox() as sandbox:
        sandbox.run("init", "--local", "--no-probe")
        sandbox.run("up", "-d")
        _record_day(sandbox)
        command = [sys.executable, "-I", "-c", PAGE, "web", "--port", "0", "--no-open"]
        page = subprocess.Popen(
            command, cwd=sandbox.project, env=sandbox.env, text=True, stdout=subprocess.PIPE
        )
        try:
            made = _day_of(page, sandbox)
            until(lambda: _is_settled(made), "the day is not written")
            _add_sample_and_failed_job(made)
            yield made
        finally:
            page.terminate()
            page.communicate(timeout=30)


def _day_of(page: subprocess.Popen[str], sandbox: Sandbox) -> Day:
    assert page.stdout
    address = urlsplit(page.stdout.readline().strip())
    (token,) = parse_qs(address.query)["token"]
    return Day(sandbox, f"http://{address.netloc}", token)


def _add_sample_and_failed_job(day: Day) -> None:
    with day.redis() as client:
        latencies.add_sample(client)
        at = "2026-11-24T01:02:03.456789Z"
        client.hset("rq:job:dead", mapping={"data": "?", "status": "failed", "ended_at": at})
        client.zadd("rq:failed:medium", {"dead": -1})


def _record_day(sandbox: Sandbox) -> None:
    folder = sandbox.folder / "user" / ".claude" / "projects" / "-shop"
    _write_transcripts(folder, sandbox.project)
    here = {"CLAUDE_PROJECT_DIR": str(sandbox.project)}
    main, agent = f"{folder}/{SESSION}.jsonl", f"{folder}/{SESSION}/subagents/agent-{AGENT}.jsonl"
    for event in EVENTS:
        paths = {"transcript_path": main if event["session_id"] == SESSION else ""}
        if "agent_transcript_path" in event:
            paths["agent_transcript_path"] = agent
        env = sandbox.env | here | {"HIVEPIPE_INSTANCE_ID": event["session_id"]}
        fire(event["hook_event_name"], changed(event, cwd=str(sandbox.project), **paths), env)
    for words in (["open", "--id", "one"], ["done", "--id", "two"]):
        sandbox.run("task", "add", *words, "--session", SESSION, "--unknown")
    sandbox.run("task", "done", "two")
    sandbox.run("archive", "sweep")
    sandbox.run("search", "cart")


def _write_transcripts(folder: Path, project: Path) -> None:
    main_lines = [prompt(1, "Mend the cart"), call(2, "Bash", "t1", command="ls cart")]
    main_lines += [
        result(4, "t1", "no such cart", failed=True),
        prompt(5, "Thank you for the cart"),
    ]
    agent_lines = [call(9, "Grep", "t5", pattern="cart"), result(10, "t5", "3 carts")]
    mark = f'{{"agentId": "{AGENT}", "isSidechain": true, '.encode()
    side = b"".join(each.replace(b"{", mark, 1) for each in agent_lines)
    agent = folder / SESSION / "subagents" / f"agent-{AGENT}.jsonl"
    agent.parent.mkdir(parents=True)
    where = json.dumps(str(project)).strip('"').encode()
    agent.write_bytes(side.replace(b"/home/ana/shop", where))
    (folder / f"{SESSION}.jsonl").write_bytes(
        b"".join(main_lines).replace(b"/home/ana/shop", where)
    )


def _is_settled(day: Day) -> bool:
    calls = day.rows("SELECT total(calls) FROM activity") == [(7,)]
    usage = day.rows("SELECT count(*) FROM usage") == [(2,)]
    tasks = day.rows("SELECT count(*) FROM tasks") == [(2,)]
    return calls and usage and tasks


def common(first: Numbers, second: Numbers, *, must: bool = True) -> Numbers:
    """Return the common entries; if they differ, fail, or with must=False return nothing."""
    shared = {name: first[name] for name in first.keys() & second.keys() - RUN_TIMES}
    theirs = {name: second[name] for name in shared}
    if must:
        assert shared == theirs
    return shared if shared == theirs else {}


def numbered(rows: list[tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in rows}


def home_key(day: Day) -> str:
    return str(day.page("/now.json")["sessions"][0]["home"])


@pytest.mark.parametrize("with_ended", [False, True])
def test_numbers_of_now(day: Day, with_ended: bool) -> None:
    page = {each["id"]: each for each in day.page(f"/now.json?all={int(with_ended)}")["sessions"]}
    words = ["sessions", "--all"] if with_ended else ["sessions"]
    output = {each["id"]: each for each in day.output(*words)["sessions"]}
    order = sorted(output, key=lambda id: output[id]["condition"] != "waiting")
    assert [*page] == order, "those that wait come first"
    for id, session in output.items():
        assert page[id]["title"] == session["objective"]
        assert page[id]["state"] == STATES[session["condition"]]
        assert page[id]["waits_for"] == (session["waits_for"] or "")
        for name in ("project", "model", "client", "calls", "failed", "last_active_at"):
            assert page[id][name] == session[name], name
    costs = {
        each["session"]: each["cost_usd"]
        for each in day.output("costs", "--by", "session")["costs"]
    }
    assert {id: each["dollars"] for id, each in page.items() if each["dollars"]} == costs
    stored = day.rows(
        f"""
        SELECT id, objective, (SELECT total(calls) FROM activity WHERE session_id = sessions.id),
          (SELECT total(failed) FROM activity WHERE session_id = sessions.id),
          (SELECT count(*) FROM agents WHERE session_id = sessions.id AND completed_at IS NULL),
          (SELECT count(*) FROM tasks WHERE session_id = sessions.id AND status = 'open'),
          (SELECT ifnull({DOLLARS}, 0) FROM usage WHERE session_id = sessions.id)
        FROM sessions WHERE status <> 'ended' OR {int(with_ended)}
        """
    )
    names = ("id", "title", "calls", "failed", "agents_at_work", "open_tasks", "dollars")
    assert numbered([tuple(each[name] for name in names) for each in page.values()]) == numbered(
        stored
    )


def test_numbers_of_a_session(day: Day) -> None:
    page = day.page(f"/session/{home_key(day)}/{SESSION}.json")
    output = day.output("session", "show", SESSION)
    assert {"session", "events", "files", "instances", "cost", "summary"} <= common(
        page, output
    ).keys()
    assert page["agent_rows"] == day.output("agents", "--session", SESSION)["agents"]
    by_agent = {each["agent"]: each for each in day.output("costs", "--by", "agent")["costs"]}
    for each in page["agent_costs"]:
        common(each, by_agent[each["agent"]])
    assert [*by_agent] == [each["agent"] for each in page["agent_costs"]]

    (stored,) = day.rows(
        f"""
        SELECT count(*), sum(input + output + cache_read + cache_write_5m + cache_write_1h),
          {DOLLARS} FROM usage WHERE session_id = '{SESSION}'
        """
    )
    assert stored == tuple(page["cost"][name] for name in ("messages", "tokens", "dollars"))
    for name, table in {
        "agents": "agents",
        "prompts": "prompts",
        "skill_uses": "skill_uses",
    }.items():
        (number,) = day.rows(f"SELECT count(*) FROM {table} WHERE session_id = '{SESSION}'")
        assert number == (page["session"][name],)
    kinds = Counter(piece["kind"] for piece in page["pieces"])
    assert kinds == {"user": 2, "call": 2, "failure": 1, "result": 1, "agent": 1}


def test_numbers_of_agents(day: Day) -> None:
    (of_session,) = day.page("/agents.json")["sessions"]
    page = {each["id"]: each for each in of_session["agents"]}
    output = {each["id"]: each for each in day.output("agents")["agents"]}
    assert page.keys() == output.keys()
    for id, each in output.items():
        assert common(page[id], each) == each
    costs = {
        each["agent"]: each["cost_usd"] for each in day.output("costs", "--by", "agent")["costs"]
    }
    assert [each["cost_usd"] for each in page.values()] == [costs.get(id) for id in page]
    stored = day.rows(
        f"""
        SELECT id, type, json_extract(metadata, '$.usage.tokens'),
          json_extract(metadata, '$.usage.duration_ms'),
          outcome, model,
          (SELECT {DOLLARS} FROM usage WHERE agent_id = agents.id) FROM agents
        """
    )
    names = ("id", "type", "tokens", "duration_ms", "outcome", "model", "cost_usd")
    shown = [tuple(each[name] for name in names) for each in page.values()]
    assert numbered(shown) == numbered(stored)


@pytest.mark.parametrize("asked", ["", "role=tool", "tool=Grep", "agent=unknown"])
def test_numbers_of_a_search(day: Day, asked: str) -> None:
    name, _, value = asked.partition("=")
    page = day.page(f"/search.json?q=cart&{asked}")
    output = day.output("search", "cart", *([f"--{name}", value] if name else []))
    assert (page["total"], len(page["hits"])) == (output["total"], len(output["hits"]))
    for shown, hit in zip(page["hits"], output["hits"], strict=True):
        assert common(shown, hit) == hit
    column = {"": "''", "role": "who", "tool": "tool", "agent": "agent"}[name]
    hits = f"""
        FROM passages JOIN archives ON archives.id = passages.archive WHERE {column} = '{value}'
        AND passages.id IN (SELECT rowid FROM pieces WHERE pieces MATCH '"cart"')
    """
    assert day.rows(f"SELECT count(*) {hits}", "search.db") == [(page["total"],)]
    for facet, of in {"role": "who", "tool": "tool", "agent": "agent"}.items():
        counted = day.rows(f"SELECT {of}, count(*) {hits} AND {of} <> '' GROUP BY 1", "search.db")
        assert sorted(map(tuple, page["facets"][facet])) == sorted(counted)


def test_numbers_of_costs(day: Day) -> None:
    page = day.page("/costs.json?all=1")
    output = day.output("costs")
    (whole,) = page["costs"]
    (of_day,) = output["costs"]
    assert {"day", "messages", "tokens", "cost_usd"} <= common(whole, of_day).keys()
    (of_model,) = day.output("costs", "--by", "model")["costs"]
    assert {"model", "messages", "tokens", "cost_usd"} <= common(whole, of_model).keys()
    assert page["total_usd"] == output["total"]["cost_usd"]
    assert page["own"] == output["own"]
    stored = day.rows(
        f"""
        SELECT date(created_at), model, count(*), sum(input), sum(output), {DOLLARS},
          round(1.0 * sum(cache_read) / sum(input + cache_read), 4)
        FROM usage GROUP BY 1, 2
        """
    )
    tokens, share = whole["tokens"], page["cache_share"]
    shown = (whole["day"], whole["model"], whole["messages"], tokens["input"], tokens["output"])
    assert stored == [(*shown, whole["cost_usd"], share)]
    assert page["trend"][-1]["cost_usd"] == page["dearest_usd"] == whole["cost_usd"]


def test_numbers_of_skills(day: Day) -> None:
    (page,) = day.page("/skills.json")["skills"]
    (output,) = day.output("skills")["skills"]
    names = ("name", "count", "failures", "session_count", "last_used")
    shown = tuple(page[name] for name in ("skill", "uses", "failures", "sessions", "last_used"))
    assert shown == tuple(output[name] for name in names)
    assert [shown] == day.rows(
        """
        SELECT skill, count(*), sum(NOT success), count(DISTINCT session_id), max(created_at)
        FROM skill_uses GROUP BY skill
        """
    )


def test_numbers_of_queues(day: Day) -> None:
    """Queues and jobs are only in Redis; SQL has the rows that jobs wrote."""
    page, output = day.page_and_output("/queues.json", "status")
    assert common(page, output).keys() >= STATUS_FIELDS
    for shown, failed in zip(page["failed"], day.output("failed", "list")["failed"], strict=True):
        common(shown, failed)
    assert page["failed_in_all"] == page["failed_chosen"] == len(page["failed"]) == 1
    assert page["failed_operations"] == {"?": 1}
    with day.redis() as client:
        assert page["failed_in_all"] == client.zcard("rq:failed:medium")
        assert page["queues"] == {name: client.llen(f"rq:queue:{name}") for name in page["queues"]}
    done = {name: latency["jobs"] for name, latency in page["latencies"]["operations"].items()}
    for operation, table in {
        "start_session": "sessions",
        "record_prompt": "prompts",
        "record_skill": "skill_uses",
    }.items():
        assert day.rows(f"SELECT count(*) FROM {table}") == [(done[operation],)]
    assert sum(done.values()) == sum(bar["jobs"] for bar in page["bars"])


def _disk_use(day: Day) -> Numbers | None:
    """Return the disk use on the page if `hivepipe disk` prints the same now."""
    shown, output = day.page("/health.json")["stacks"][0]["disk"], day.output("disk")
    stores = ("archives", "subagents", "search", "exports")  # the other stores grow
    is_same = all(shown["stores"][name] == output["stores"][name] > 0 for name in stores)
    return shown if is_same and shown["retention"] == output["retention"] else None


def _shows_what_doctor_finds(day: Day) -> bool:
    shown, found = day.page("/health.json")["stacks"][0]["doctor"], day.output("doctor")
    return bool(shown) and shown == {name: found[name] for name in shown}


def test_numbers_of_health(day: Day) -> None:
    os.kill(day.sandbox.pid("slow"), signal.SIGTERM)  # it writes the last files
    files = day.sandbox.home
    until(lambda: len([*files.rglob("skill-usage*.json")]) == 2, "the last files are not written")
    page, output = day.page_and_output("/health.json", "status")
    assert common(page, output).keys() >= STATUS_FIELDS
    until(lambda: _shows_what_doctor_finds(day), "the page and `doctor` differ")
    disk = until(lambda: _disk_use(day), "the page and `disk` differ")
    assert disk["total"] == sum(disk["stores"].values())
    assert page["alerts"][0]["name"] == "failed_jobs"
    known = [(each["name"], each["since"]) for each in page["alerts"] if each["since"]]
    assert {*known} <= {*day.rows("SELECT name, raised_at FROM alerts WHERE ended_at IS NULL")}
    fired = Counter(event["hook_event_name"] for event in EVENTS)
    assert {event: each["hooks"] for event, each in page["hook_times"].items()} == fired
