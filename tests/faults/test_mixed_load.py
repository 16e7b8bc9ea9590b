"""Many parallel hooks, a tenth of the events twice: every table equals the oracle's rows."""

import json
import signal
import threading
from pathlib import Path

import pytest

from hivepipe import direct
from hivepipe.events.job_plan import Message
from hivepipe.queue.spool import write_spool
from tests.conftest import until
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.faults.oracle import Fired, Mix, Rows
from tests.rounds import SEED, rounds

AT_ONCE = 50
FEW_AT_ONCE = 16  # with more, the hooks of the first kill are still ending at the second
SLACK_NS = 2_000_000  # the database stores milliseconds


def mixed(few: int = 3) -> Mix:
    """Return a mix of 40 events for each round; HIVEPIPE_TEST_ROUNDS=25 gives 1,000 events."""
    return oracle.mix(SEED, 40 * rounds(few))


def check_times(bench: Bench, events: tuple[Fired, ...]) -> None:
    """The time of every row lies between start and end of the hooks that fired its event."""
    rows: Rows = oracle.comparable(bench.tables())
    found = {("prompt", r["prompt_id"]): r["created_at"] for r in rows["prompts"]}
    found |= {("skill", r["arguments"]): r["created_at"] for r in rows["skill_uses"]}
    found |= {
        ("edit", r["data"]["file_path"]): r["created_at"]
        for r in rows["session_logs"]
        if r["data"].get("file_path")
    }
    checked = 0
    for event in events:
        p = event.payload
        tool = p.get("tool_name")
        wanted = p.get("tool_input", {})
        key = {
            "Edit": ("edit", wanted.get("file_path")),
            "Skill": ("skill", wanted.get("args")),
            None: ("prompt", p.get("prompt_id")),
        }.get(tool)
        if key not in found:
            continue
        began, ended = bench.fired_at[json.dumps(p, sort_keys=True)]
        low, high = oracle.at(began - SLACK_NS), oracle.at(ended + SLACK_NS)
        assert low <= found[key] <= high, key
        checked += 1
    assert checked == len(found) > 10


def fire_all(bench: Bench, events: Mix, **env: str) -> None:
    bench.fire(events.opening, 1, **env)
    bench.fire(events.bulk, AT_ONCE, **env)
    bench.fire(events.closing, 1, **env)


def test_mixed_events_through_the_queue(bench: Bench) -> None:
    events = mixed()
    writer = bench.plain_writer()
    fire_all(bench, events)
    bench.settle(writer)
    bench.assert_tables(events.all, exact_times=False)
    bench.assert_accounts(oracle.job_count(events.all))
    check_times(bench, events.all)
    assert writer.end() == 0


def test_mixed_events_survive_two_kills_of_redis(bench: Bench) -> None:
    """kill -9 of Redis twice while hooks fire; meanwhile events go to the spool."""
    events = mixed()
    writer = bench.plain_writer()
    bench.fire(events.opening, 1)
    bench.settle(writer)  # the writer runs
    feeder = threading.Thread(target=bench.fire, args=(events.bulk, FEW_AT_ONCE))
    feeder.start()
    for part in (0.2, 0.6):
        many = part * len(events.all)
        until(lambda: bench.hooks_ended > many, "no hooks")  # noqa: B023
        assert feeder.is_alive(), "the kill came after the load"
        before = {*bench.home.spool}
        bench.server.end(signal.SIGKILL)
        until(lambda: {*bench.home.spool} - before, "nothing was spooled")  # noqa: B023
        bench.server.start()
    feeder.join()
    bench.settle(writer, 40)
    bench.fire(events.closing, 1)
    bench.settle(writer)
    bench.assert_tables(events.all, exact_times=False)
    bench.assert_accounts(oracle.job_count(events.all))
    check_times(bench, events.all)


def test_mixed_events_through_the_direct_path(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no Redis and no writer. Events that met a busy database are in the spool."""
    events = mixed(1)
    bench.server.end(signal.SIGKILL)
    bench.fire(events.opening, 1, USE_QUEUE="false")
    bench.fire(events.bulk, AT_ONCE, USE_QUEUE="false")
    bench.home.use_environment(monkeypatch)
    report = direct.drain(str(bench.home.path))
    assert (report.failed, report.set_aside) == ({}, {})
    bench.fire(events.closing, 1, USE_QUEUE="false")
    until(lambda: bench.home.spool == [], "an event waits")  # a native hook does not wait for it
    bench.assert_tables(events.all, exact_times=False)
    assert bench.applied() == oracle.job_count(events.all) - oracle.slow_count(events.all)
    check_times(bench, events.all)


def test_the_direct_path_leaves_a_file_that_cannot_be_applied(bench: Bench) -> None:
    """An event whose session does not exist is neither applied nor lost."""
    lost = oracle.agent(1, oracle.SESSIONS[0], "inst-a")
    marker = bench.home.path / "instances" / "inst-a"
    marker.parent.mkdir(parents=True)
    marker.write_text(f"id=inst-a\npid=1\nstarted=\nsession={lost.session}\nend\n")
    bench.fire([lost], 1, USE_QUEUE="false")
    assert len(bench.home.spool) == 1
    assert Path(bench.home.spool[0]).stat().st_size > 0
    assert bench.tables()["agents"] == []


def test_the_direct_path_continues_after_a_job_that_breaks_its_handler(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It continues as the writer does, and the file stays."""
    bench.server.end(signal.SIGKILL)
    events = oracle.timed([oracle.start(0, "inst-a"), oracle.edit(1, oracle.SESSIONS[0], "inst-a")])
    first, second = oracle.messages(events, bench.project, bench.swarm)
    broken = [Message(m.id[::-1], "", m.queue, "", m.created_at, _broken(m)) for m in second]
    for number, messages in enumerate((first, broken, second)):
        write_spool(f"{bench.home.path}/spool", number, messages)
    bench.home.use_environment(monkeypatch)
    report = direct.drain(str(bench.home.path))
    assert report.applied == 2
    ((path, reason),) = report.failed.items()
    assert "too large" in reason
    assert bench.home.spool == [path]
    assert bench.applied() == oracle.job_count(events) + 1, "and the log line of the broken event"


def _broken(message: Message) -> str:
    """Return a message's envelope with another id and a total that no column can store."""
    text = message.envelope.replace(message.id, message.id[::-1])
    return text.replace('op_count":1', f'op_count":{1 << 63}')
