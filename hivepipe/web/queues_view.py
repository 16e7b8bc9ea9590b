"""The view Queues: waiting jobs, latencies, failed jobs, and the log of actions."""

from collections import Counter
from contextlib import suppress
from dataclasses import asdict

from hivepipe.db.listings import Entry
from hivepipe.files.action_log import Action, actions
from hivepipe.monitor.status import settled_report
from hivepipe.monitor.status_words import verdict
from hivepipe.queue.failed_jobs import FailedJob, failed_jobs
from hivepipe.reading.homes import KnownHome, settings_of
from hivepipe.stack.condition import FINE
from hivepipe.stack.runtime_folder import Stack
from hivepipe.stack.stack_processes import ProcessTable
from hivepipe.web.bar_chart import latency_bars
from hivepipe.web.failed_choice import jobs_matching, name_of
from hivepipe.web.view_query import Content, ViewQuery

MOST_FAILED = 500
MOST_ACTIONS = 20


def queues(query: ViewQuery) -> Content:
    """Return the queues and actions of each stack, and its failed jobs if its Redis answers.

    `operation` and `reason` filter the failed jobs; `done` is the time of the action whose result
    is shown.
    """
    table = ProcessTable()
    return {"stacks": [_queues(query, known, table) for known in query.homes]}


def _queues(query: ViewQuery, known: KnownHome, table: ProcessTable) -> Entry:
    place = known.place()
    stack = Stack.of(place)
    with settings_of(known.home):
        report = settled_report(place, stack, table)
    found: list[FailedJob] = []
    if report["queues"] is not None:
        with failed_jobs(stack.address) as store:
            found = store.jobs()
    chosen = jobs_matching(found, query.filter("operation"), query.filter("reason"))
    log = _actions(known.home)
    return {
        **report,
        "verdict": verdict(report),
        "is_fine": report["condition"] in FINE,
        "key": known.key,
        "project": known.project,
        "bars": latency_bars(report["latencies"]["course"]) if report["latencies"] else [],
        "failed_in_all": len(found),
        "failed_chosen": len(chosen),
        "failed_operations": Counter(job.operation for job in found),
        "failed": [_described(job) for job in chosen[:MOST_FAILED]],
        "actions": [asdict(each) for each in log[:MOST_ACTIONS]],
        "told": next((asdict(each) for each in log if each.at == query.filter("done")), None),
    }


def _described(job: FailedJob) -> Entry:
    return {
        "id": job.id.encode("utf-8", "replace").decode(),
        "name": name_of(job),
        "operation": job.operation,
        "queue": job.queue,
        "failed_at": job.failed_at,
        "reason": job.headline,
    }


def _actions(home: str) -> list[Action]:
    with suppress(OSError):  # show the queues even if the log cannot be read
        return actions(home)
    return []
