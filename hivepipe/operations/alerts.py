"""raise_alerts compares the alerts with those of the last check; send_alert notifies the user.

The active alerts are kept in Redis, because the store may be unwritable, which is itself an alert.
After a loss of Redis' data they are read from the store.
"""

import logging

from hivepipe.alerts import notify
from hivepipe.alerts.rules import Alert, Change, alerts_of, compare
from hivepipe.db import alerts as stored
from hivepipe.db.database import Database
from hivepipe.db.location import database_path
from hivepipe.events.job_plan import Job
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin
from hivepipe.monitor.snapshot import effectless, vitals, zero_rows
from hivepipe.operations.families.alerts import RecordAlert, SendAlert
from hivepipe.operations.follow_up import enqueue_or_spool
from hivepipe.operations.job_context import JobContext
from hivepipe.queue import alert_counts, hook_times, latencies
from hivepipe.queue.connection import connect
from hivepipe.queue.figures import add_sample, figures
from hivepipe.queue.full_memory import unless_full
from hivepipe.settings import variable

logger = logging.getLogger("hivepipe.alerts")


def raise_alerts(context: JobContext, job: Origin, _args: Args) -> None:
    """Check the stack, then log, record and send the alerts that were raised or have ended.

    Also store the minute's samples: counts of jobs, latencies, durations of hooks.
    """
    with connect(context.address) as connection:
        found = figures(connection)
        seen = alerts_of(vitals(context.home, found, connection))
        known = alert_counts.load(connection)
        if known is None:
            known = dict.fromkeys(stored.active_alerts(database_path(context.home)), 0)
        change = compare(seen, known)
        _report(context, job, change)
        alert_counts.save(connection, change.standing)
        with unless_full():
            add_sample(connection, found.operations, zero_rows(effectless(context.home)))
            latencies.add_sample(connection)
            hook_times.add_sample(connection)


def _report(context: JobContext, job: Origin, change: Change) -> None:
    for alert in change.begun:
        logger.warning("alert %s: %s", alert.name, alert.text)
    for name in change.over:
        logger.info("alert %s is over", name)
    ceased = [Alert(name, "is over") for name in change.over]
    changes = [(alert, "raised") for alert in change.begun] + [(alert, "over") for alert in ceased]
    jobs = [_job(RecordAlert, alert, state) for alert, state in changes]
    if variable("HIVEPIPE_ALERT_COMMAND") or variable("HIVEPIPE_ALERT_WEBHOOK"):
        jobs += [_job(SendAlert, alert, state) for alert, state in changes]
    if jobs:
        enqueue_or_spool(context, job, jobs)


def _job(args: type[RecordAlert] | type[SendAlert], alert: Alert, state: str) -> Job:
    return args(name=alert.name, text=alert.text, state=state).job(alert.name)


def record_alert(db: Database, job: Origin, args: RecordAlert) -> None:
    if args.state == "over":
        stored.end_alert(db, args.name, job.time)
    else:
        stored.raise_alert(db, args.name, args.text, job.time)


def send_alert(context: JobContext, job: Origin, args: SendAlert) -> None:
    """Run the user's command and call the user's webhook, once each; failures are logged."""
    fields = {
        "home": context.home,
        "alert": args.name,
        "state": args.state,
        "text": args.text,
        "at": job.time,
    }
    command, url = variable("HIVEPIPE_ALERT_COMMAND"), variable("HIVEPIPE_ALERT_WEBHOOK")
    for target, tell in ((command, notify.run), (url, notify.post)):
        problem = tell(target, fields) if target else ""
        if problem:
            logger.warning("alert %s not sent: %s", fields["alert"], problem)
