"""The ledger of spending: reservations, daily caps, and several processes at once."""

import posix
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hivepipe.db.spending import Amount, spending, spending_path

EACH = Amount(1, 1_000, 10_000)
CAPS = Amount(20, 200_000, 500_000)
CALL = {"provider": "openai", "model": "gpt-5.4-mini", "home": "h"}


pytestmark = pytest.mark.usefixtures("environ")


@pytest.mark.parametrize(
    ("caps", "granted"),
    [
        (CAPS, 2),
        (CAPS._replace(requests=1), 1),
        (CAPS._replace(requests=0), 0),
        (CAPS._replace(tokens=1_999), 1),
        (CAPS._replace(micro_usd=9_999), 0),
    ],
)
def test_each_cap_limits_what_is_granted(caps: Amount, granted: int) -> None:
    with spending() as ledger:
        assert ledger.reserve("s", EACH, 2, caps, 0, **CALL)[1] == granted
        assert ledger.spent(0) == Amount(*(granted * each for each in EACH))


def test_a_call_that_costs_nothing_is_only_counted() -> None:
    with spending() as ledger:
        free = EACH._replace(micro_usd=0)
        assert ledger.reserve("s", free, 2, CAPS._replace(micro_usd=0), 0, **CALL)[1] == 0
        assert ledger.reserve("s", free, 2, CAPS, 0, **CALL)[1] == 2
    assert spending_path().stat().st_mode & 0o777 == 0o600, "only the user can read it"


def test_a_settled_call_counts_its_amount_and_an_open_one_its_reservation() -> None:
    with spending() as ledger:
        id, _ = ledger.reserve("s", EACH, 2, CAPS, 0, **CALL)
        ledger.reserve("t", EACH, 2, CAPS, 0, **CALL)
        ledger.settle(id, answered=True, amount=Amount(1, 300, 70))
        assert ledger.spent(0) == Amount(3, 2_300, 20_070)
        assert ledger.tries("s") == (0, True, ())
        ((pid, at),) = ledger.tries("t").open
        assert (pid, at <= time.time()) == (posix.getpid(), True)
        ledger.give_up("t")
        assert ledger.tries("t") == (1, False, ())
        assert ledger.spent(0) == Amount(3, 2_300, 20_070)
        assert ledger.spent(time.time() + 60) == Amount(0, 0, 0)


def test_many_processes_stay_below_the_cap(tmp_path: Path) -> None:
    code = (
        "from hivepipe.db.spending import *\n"
        "with spending() as ledger:\n"
        "    for n in range(20):\n"
        f"        ledger.reserve('s', Amount{tuple(EACH)}, 2, Amount{tuple(CAPS)}, 0, "
        f"**{CALL!r})\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-I", "-c", code], env={"HOME": str(tmp_path)})
        for _ in range(4)
    ]
    assert [process.wait(60) for process in running] == [0] * 4
    with spending() as ledger:
        assert ledger.spent(0).requests == 20
