"""The last record of a file is incomplete, as after a power cut or a kill during a write."""

import signal
from random import Random

from hivepipe.queue.spool import write_spool
from tests.archive_scene import line
from tests.conftest import redis_files, until
from tests.faults import oracle
from tests.faults.injections.arena import Arena
from tests.faults.injections.kills import handing_over
from tests.faults.injections.rounds import Fault
from tests.faults.injections.wave import Wave, session_of

SPOOL, AOF = "a spool file", "Redis' append-only file"
LOG, TRANSCRIPT = "the database's write-ahead log", "the transcript"
COMMAND = b"*3\r\n$5\r\nRPUSH\r\n$13\r\nrq:queue:high\r\n$4\r\nnone\r\n"


def tear(arena: Arena, wave: Wave, step: str, rng: Random) -> str:
    """Leave half a record and check that its reader notices."""
    is_seen = {SPOOL: _spool, AOF: _aof, LOG: _log, TRANSCRIPT: _transcript}[step]
    return step if is_seen(arena, wave, rng) else ""


def _spool(arena: Arena, wave: Wave, rng: Random) -> bool:
    """The file is set aside, and the files before and after it are read."""
    lost = oracle.timed([oracle.prompt(1, session_of(wave.number, "t"), "inst-torn")])
    (sent,) = oracle.messages(lost, arena.project, arena.swarm)
    whole = write_spool(f"{arena.home.root}/elsewhere", wave.number, sent)
    with open(whole, "rb") as file:
        data = file.read()
    spool = arena.home.path / "spool"
    spool.mkdir(exist_ok=True)
    name = f"{oracle.FIRST_NS + rng.randrange(100):020d}_{wave.number}.json"
    (spool / name).write_bytes(data[: rng.randrange(len(data) - 1)])
    with handing_over(arena, wave, rng):
        until(lambda: (spool / "bad" / name).exists(), "not set aside")
    return (spool / "bad" / f"{name}.reason").exists()


def _aof(arena: Arena, wave: Wave, rng: Random) -> bool:
    """Redis drops the record when it starts."""
    with handing_over(arena, wave, rng):
        arena.server.end(signal.SIGKILL)
        path = redis_files(arena.home.path)[-1]
        with path.open("ab") as file:
            file.write(COMMAND[: rng.randrange(1, len(COMMAND) - 1)])
        size = path.stat().st_size
        arena.server.start()
        arena.redis.connection_pool.disconnect()
    return "runcat" in arena.server.text[-5000:] or path.stat().st_size < size


def _log(arena: Arena, wave: Wave, rng: Random) -> bool:
    """SQLite recognises valid frames by their checksums."""
    writer = arena.keep("writer")
    log = arena.home.database.with_name("hive.db-wal")
    with handing_over(arena, wave, rng):
        until(lambda: log.exists() and log.stat().st_size, "nothing is written")
        writer.end(signal.SIGKILL)
        with log.open("ab") as file:
            file.write(rng.randbytes(rng.randrange(1, 6000)))
    return not writer.is_running


def _transcript(arena: Arena, wave: Wave, rng: Random) -> bool:
    """The half line waits, and is archived when it is complete."""
    session = session_of(wave.number)
    arena.finish_transcript(wave)
    path = arena.transcript(wave)
    late = line(50, "the line that came late", sessionId=session)
    cut = rng.randrange(1, len(late) - 2)
    with path.open("ab") as file:
        file.write(late[:cut])
    with handing_over(arena, wave, rng):
        kept = until(lambda: list(arena.archive.rglob(f"*_{session}.jsonl")), "not archived")
        until(lambda: kept[0].stat().st_size, "nothing archived")
        is_out = late not in kept[0].read_bytes()
        with path.open("ab") as file:
            file.write(late[cut:])
    arena.settle_all()
    return is_out and late in kept[0].read_bytes()


FAULTS = (Fault("a torn last record", (SPOOL, AOF, LOG, TRANSCRIPT), tear, ("writer", "slow")),)
