"""Operations of the pipeline itself."""

from hivepipe.db.database import Database
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin


class Probe(Args, operation="probe", handler="families.upkeep.probe", of_no_session=True):
    """The event of `hivepipe doctor --probe`: its id is recorded, and nothing else."""


def probe(_db: Database, _job: Origin, _args: Probe) -> None:
    """Do nothing: the job's id is recorded where it is applied."""


class RecordSlot(
    Args,
    operation="record_slot",
    handler="slots.record_slot",
    priority=9,
    of_no_session=True,
):
    """A slot whose job ran outside the store."""

    name: str = ""
    opened: int
    executed_ns: int
