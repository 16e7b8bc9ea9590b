"""Operations of alerts."""

from hivepipe.jobs.args import HERE, Args, Every
from hivepipe.queue.names import SLOW


class RaiseAlerts(
    Args,
    handler="alerts.raise_alerts",
    priority=6,
    queue=HERE,
    every=Every(60, "alerts", "no alert is raised"),
):
    """Check the stack."""


class Change(Args):
    """An alert that was raised or is over, as `state` says."""

    name: str = ""
    text: str = ""
    state: str = ""


class RecordAlert(Change, handler="alerts.record_alert", priority=6, without_session=True):
    """Write the change to the store."""


class SendAlert(Change, handler="alerts.send_alert", priority=7, queue=SLOW):
    """Send the change to the user's command and webhook."""
