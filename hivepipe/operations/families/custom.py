"""Operations of installed packages: one job for each operation and event."""

from typing import Any

from hivepipe.jobs.args import Args
from hivepipe.queue.names import SLOW


class RunCustom(
    Args, handler="custom_runs.run_custom", priority=9, queue=SLOW, without_session=True
):
    """Call the function of an entry point; `data` is the redacted payload of the event's job."""

    name: str
    event: str
    data: dict[str, Any]
