"""A busy machine: a hook is suspended at the worst moments."""

import json
import sys

import pytest

from tests.conftest import NEUTRAL, ROOT
from tests.faults import oracle
from tests.faults.harness import Bench
from tests.outcome import outcome_of
from tests.payloads import STOP

# the hook, suspended for a second after it has written its answer
SLOW_TO_END = f"""
import sys
sys.path.append({str(ROOT)!r})
import posix, time
from hivepipe.hook import intake
from hivepipe.hook import run as hook
intake.NEUTRAL, intake.NOTHING = b"said", (b"said", "")
write = posix.write
def write_and_wait(descriptor, data):
    written = write(descriptor, data)
    if data == intake.NEUTRAL:
        time.sleep(1)
    return written
posix.write = write_and_wait
hook.run("Stop")
"""


# the hook, suspended before or after Redis has taken its event, or while it writes to the disk
HELD_UP = """
import sys
sys.path.append(sys.argv[1])
import time
from hivepipe.hook import hand_over
from hivepipe.hook import run as hook
from hivepipe.queue import client, spool
push, write = hand_over._push, spool._write
def push_and_wait(*arguments):
    if sys.argv[2] == "writing":
        raise client.RefusedError
    if sys.argv[2] == "after":
        push(*arguments)
    time.sleep(60)
def write_and_wait(*arguments):
    write(*arguments)
    spool._write = write
    if sys.argv[2] == "writing":
        time.sleep(60)
hand_over._push, spool._write = push_and_wait, write_and_wait
hook.run("Stop")
"""


@pytest.mark.parametrize("when", ["before", "after", "writing"])
def test_a_hook_that_is_out_of_time_keeps_its_event(bench: Bench, when: str) -> None:
    """The event goes to the spool, and counts once even if Redis has it too."""
    bench.fire([oracle.start(0, "inst-a")], 1)
    stop = oracle.stop(1, oracle.SESSIONS[0], "inst-a", background_tasks=[])
    done = outcome_of(
        [sys.executable, "-I", "-S", "-c", HELD_UP, str(ROOT), when],
        bench.home.with_env(INSTANCE_ID="inst-a"),
        input=json.dumps(stop.payload),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, NEUTRAL, "")
    assert len(bench.home.spool) == 1
    assert list(bench.home.spool[0].parent.iterdir()) == bench.home.spool
    assert "out of time; the event is kept" in bench.hook_log
    events = oracle.timed([oracle.start(0, "inst-a"), stop])
    bench.settle(bench.plain_writer())
    bench.assert_tables(events, exact_times=False)
    bench.assert_accounts(oracle.job_count(events))


@pytest.mark.parametrize("use_queue", ["true", "false"])
def test_a_hook_that_is_late_after_its_answer_is_not_out_of_time(
    bench: Bench, use_queue: str
) -> None:
    done = outcome_of(
        [sys.executable, "-I", "-S", "-c", SLOW_TO_END],
        bench.home.with_env(USE_QUEUE=use_queue),
        input=json.dumps(STOP),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "said", "")
    assert "out of time" not in bench.hook_log
