"""Operations of the pipeline itself."""

from hivepipe.db.database import Database
from hivepipe.jobs.args import Args
from hivepipe.jobs.origin import Origin


class Probe(Args, handler="families.upkeep.probe", without_session=True):
    """The event of `hivepipe doctor --probe`; only its id is recorded."""


def probe(_db: Database, _job: Origin, _args: Probe) -> None:
    """Do nothing, because the id of an applied job is recorded anyway."""


class RecordSlot(Args, handler="slots.record_slot", priority=9, without_session=True):
    """Record that a slot of a periodic operation was executed outside a store transaction."""

    name: str = ""
    opened: int
    executed_ns: int
