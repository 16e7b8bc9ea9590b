"""`make faults`: every fault in seeded rounds, and the table of what was hit.

HIVEPIPE_TEST_ROUNDS=200 asks for so many rounds in all; HIVEPIPE_TEST_SEED for others than the
usual ones; HIVEPIPE_TEST_ROUND=17 for one round alone, of the fault that `-k` names.
"""

import pytest

from tests.conftest import Home, Server
from tests.faults.injections import (
    clocks,
    disks,
    kills,
    models,
    orders,
    schemas,
    stacks,
    stops,
    torn,
)
from tests.faults.injections.arena import Arena
from tests.faults.injections.rounds import Fault, Rounds

FAULTS = (
    *kills.FAULTS,
    *models.FAULTS,
    *stacks.FAULTS,
    *stops.FAULTS,
    *disks.FAULTS,
    *clocks.FAULTS,
    *torn.FAULTS,
    *orders.FAULTS,
    *schemas.FAULTS,
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_rounds(
    fault: Fault, private_home: Home, redis_server: Server, request: pytest.FixtureRequest
) -> None:
    arena = Arena(private_home, redis_server)
    rounds = Rounds(fault, arena, len(FAULTS))
    try:
        rounds.run()
    finally:
        arena.close()
        outcome = rounds.outcome
        said = (fault.name, dict(outcome.hits), dict(outcome.damage))
        request.node.user_properties.append(("faults", said))
