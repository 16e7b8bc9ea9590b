"""Operations of alerts."""

from hivepipe.jobs.args import Args
from hivepipe.queue.names import SLOW


class Change(Args):
    """An alert that was raised or has ended; `state` tells which."""

    name: str = ""
    text: str = ""
    state: str = ""


class RecordAlert(Change, handler="alerts.record_alert", priority=6, without_session=True):
    """Record that an alert was raised or has ended."""


class SendAlert(Change, handler="alerts.send_alert", priority=7, queue=SLOW):
    """Send the change of an alert to the user's command and webhook."""
