"""Command `status`: processes, jobs, spool."""

import json
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from redis import Redis
from redis.exceptions import RedisError

from hivepipe.errors import StoreError
from hivepipe.home import Place, locate
from hivepipe.jobs import ENVELOPE_VERSION
from hivepipe.queues import claims, connection, endpoint
from hivepipe.queues.names import ALL_QUEUES
from hivepipe.settings import idle_secs
from hivepipe.stack import supervisor
from hivepipe.stack.leave import may_leave
from hivepipe.stack.lock import Stack
from hivepipe.stack.redis_server import answers
from hivepipe.stack.starter import read_starting
from hivepipe.store.listings import listings
from hivepipe.store.location import database_path

TROUBLE_SECS = 10  # shorter ones are other people's transactions


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(as_json: bool) -> None:
    """Show processes, queues and spool; exit with 1 if the stack is unwell."""
    place = locate(".")
    report = _report(place, Stack.of(place))
    if as_json:
        click.echo(json.dumps(report))
    else:
        _show(report)
    sys.exit(0 if report["healthy"] else 1)


def _report(place: Place, stack: Stack) -> dict[str, Any]:
    alive = answers(stack.address)
    entries = [
        {
            "name": entry["name"],
            "state": entry["statename"].lower(),
            "pid": entry["pid"],
            "uptime_secs": entry["now"] - entry["start"] if entry["pid"] else 0,
        }
        for entry in supervisor.processes(stack)
    ]
    report = {
        "schema": 1,
        "home": place.home,
        "state": place.state,
        "healthy": supervisor.is_ready(stack) and all(e["state"] == "running" for e in entries),
        "redis": "up" if alive else "down",
        "address": endpoint.shown(place.socket),
        "processes": entries,
        "leaves_when_idle": may_leave(stack),
        "failed_start": _failed_start(stack),
        **_in_redis(stack, alive),
        **_on_disk(place.home),
    }
    trouble = report["store_trouble"]
    if report["newer_version"] or (trouble and trouble["secs"] > TROUBLE_SECS):
        report["healthy"] = False
    return report


def _failed_start(stack: Stack) -> dict[str, Any] | None:
    """Return why hooks could not start the stack, and when one tries again; None if they could."""
    starting = read_starting(stack.folder)
    if not starting.failures:
        return None
    return {
        "reason": starting.reason,
        "failures": starting.failures,
        "again_in_secs": max(round(starting.not_before - time.time()), 0),
    }


def _in_redis(stack: Stack, alive: bool) -> dict[str, Any]:
    """Return where the jobs are; None while nobody can say, which is not 0."""
    unknown = dict.fromkeys(
        (
            *("queues", "accepted", "periodic", "accounts", "oldest_waiting_secs"),
            *("store_trouble", "newer_version"),
        )
    )
    if not alive:
        return unknown
    try:
        with connection.connect(stack.address) as client:
            accounts = claims.accounts(client)
            return {
                "queues": {name: client.llen(f"rq:queue:{name}") for name in ALL_QUEUES},
                "accepted": int(client.get(connection.ACCEPTED_KEY) or 0),
                "periodic": int(client.get(connection.PERIODIC_KEY) or 0),
                "accounts": accounts,
                "oldest_waiting_secs": _oldest_secs(client),
                "store_trouble": _trouble(client.hgetall(claims.TROUBLE_KEY)),
                "newer_version": _newer(client.get(claims.NEWER_KEY)),
            }
    except RedisError:  # it went away just now
        return unknown


def _newer(version: Any) -> int | None:
    """Return the envelope version that jobs wait for; None if this hivepipe reads it."""
    return int(version) if version and int(version) > ENVELOPE_VERSION else None


def _oldest_secs(client: Redis) -> float | None:
    """Return how long the first job of a queue has waited; what is no job of anybody's has not."""
    heads: list[Any] = [client.lindex(f"rq:queue:{name}", 0) for name in ALL_QUEUES]
    pipe = client.pipeline(transaction=False)
    for id in filter(None, heads):
        pipe.hget(b"rq:job:" + id, "enqueued_at")
    found = pipe.execute(raise_on_error=False)
    return max((_age_secs(at) for at in found if isinstance(at, bytes)), default=None)


def _trouble(found: Any) -> dict[str, Any] | None:
    """Return since when the writer cannot write, and why; None if it can."""
    if not found:
        return None
    secs = time.time() - float(found[b"since"])
    return {"secs": round(secs, 1), "reason": found[b"reason"].decode("utf-8", "replace")}


def _age_secs(at: bytes) -> float:
    try:
        return max(time.time() - datetime.fromisoformat(at.decode()).timestamp(), 0)
    except ValueError:
        return 0


def _on_disk(home: str) -> dict[str, Any]:
    spool = Path(home, "spool")
    try:
        with listings(database_path(home)) as store:
            effectless: dict[str, int] | None = store.effectless()
    except StoreError:  # not made yet
        effectless = None
    bad = (path for path in spool.glob("bad/*") if path.suffix != ".reason")
    return {
        "spool": len(list(spool.glob("*.json"))),
        "set_aside": len(list(bad)),
        "effectless": effectless,
    }


def _show(report: dict[str, Any]) -> None:
    click.echo(f"home      {report['home']} ({report['state']})")
    click.echo(f"redis     {report['redis']}, {report['address']}")
    if report["leaves_when_idle"]:
        click.echo(f"started   by a hook; leaves after {idle_secs():.0f} s with nothing to do")
    failed = report["failed_start"]
    if failed:
        click.echo(f"hooks could not start it, {failed['failures']} times: {failed['reason']}")
        click.echo(f"the next hook after {failed['again_in_secs']} s tries again")
    for entry in report["processes"]:
        line = f"{entry['name']:<9} {entry['state']}, pid {entry['pid']}"
        click.echo(f"{line}, up {entry['uptime_secs']} s")
    _show_jobs(report)
    click.echo(f"spool     {report['spool']} files, {report['set_aside']} set aside in spool/bad")
    _show_effectless(report["effectless"])
    if report["store_trouble"]:
        trouble = report["store_trouble"]
        click.echo(f"the database does not answer for {trouble['secs']} s: {trouble['reason']}")
    if report["newer_version"]:
        click.echo(
            f"jobs of a newer hivepipe wait (version {report['newer_version']}): upgrade this one"
        )
    click.echo("healthy" if report["healthy"] else "not healthy")


def _show_effectless(counters: dict[str, int] | None) -> None:
    """A checkpoint without effect is one somebody will miss: it has its own line, always."""
    if counters is None:
        click.echo("no effect unknown without a database")
        return
    of_checkpoints = sum(n for name, n in counters.items() if name.endswith(":update_checkpoint"))
    click.echo(f"no effect {of_checkpoints} of update_checkpoint")
    others = [f"{name} {n}" for name, n in counters.items() if "update_checkpoint" not in name]
    if others:
        click.echo(f"no effect {', '.join(others)}")


def _show_jobs(report: dict[str, Any]) -> None:
    accounts = report["accounts"]
    if accounts is None:
        click.echo("jobs      unknown while Redis is down")
        return
    for name, count in report["queues"].items():
        click.echo(f"{name:<9} {count} waiting")
    if report["oldest_waiting_secs"] is not None:
        click.echo(f"oldest    waits for {report['oldest_waiting_secs']:.0f} s")
    parts = {name: count for name, count in accounts.items() if name != "accepted"}
    found = sum(parts.values())
    sign = "=" if found == accounts["accepted"] else f"but {found} are found:"
    terms = " + ".join(f"{count} {name}" for name, count in parts.items())
    by_clock = f", {report['periodic']} by the clock" if report["periodic"] else ""
    click.echo(f"accepted  {accounts['accepted']} {sign} {terms}{by_clock}")
    if accounts["dead"]:
        click.echo(f"{accounts['dead']} dead letters: hivepipe failed list")
