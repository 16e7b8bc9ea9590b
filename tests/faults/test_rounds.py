"""`make faults`: every fault in seeded rounds, with a table of the steps that were hit.

HIVEPIPE_TEST_ROUNDS=200 sets the number of all rounds, HIVEPIPE_TEST_SEED the seed.
HIVEPIPE_TEST_ROUND=17 runs one round alone, of the fault that `-k` selects.
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
