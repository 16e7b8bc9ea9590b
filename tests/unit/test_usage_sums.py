"""The sums of usage that triggers maintain equal the sums of the messages."""

import random
from collections import Counter
from typing import Any

from hivepipe.costs.tokens import BANDS, Rate, Tokens
from hivepipe.db.database import Database
from hivepipe.db.listings import Listings, listings
from hivepipe.db.usage import charges

OWN = ("message_id", "request_id", "session_id", "agent_id", "is_sidechain", "is_replay")
COLUMNS = (*OWN, "created_at", "model", "speed", "region", *Tokens._fields)
COUNTS = Tokens._fields
Row = dict[str, Any]


def random_message(chance: random.Random) -> Row:
    hour, minute = chance.randrange(3), chance.randrange(60)
    return {
        "message_id": f"m{chance.randrange(40)}",
        "request_id": f"r{chance.randrange(3)}",
        "session_id": f"s{chance.randrange(3)}",
        "agent_id": chance.choice(("", "a1", "a2")),
        "is_sidechain": chance.randrange(2),
        "is_replay": 0,
        "created_at": f"2026-11-24T0{hour}:{minute:02}:{chance.randrange(60):02}.000Z",
        "model": chance.choice(("opus", "haiku")),
        "speed": chance.choice(("", "fast")),
        "region": chance.choice(("", "us")),
        **{name: chance.choice((0, 7, 99_990, 120_000)) for name in COUNTS},
    }


def change(db: Database, chance: random.Random) -> None:
    """Insert, merge or delete a message, or move one to another session."""
    row = random_message(chance)
    names = ", ".join(COLUMNS)
    values = ", ".join(f":{name}" for name in COLUMNS)
    match chance.randrange(6):
        case 0:
            db.execute("DELETE FROM usage WHERE message_id = :m", {"m": row["message_id"]})
        case 1:
            sql = "UPDATE usage SET session_id = :s, output = output + 5 WHERE message_id = :m"
            db.execute(sql, {"s": row["session_id"], "m": row["message_id"]})
        case 2:
            db.execute(f"INSERT OR IGNORE INTO usage ({names}) VALUES ({values})", row)
        case _:
            updates = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS[2:])
            sql = f"""
                INSERT INTO usage ({names}) VALUES ({values})
                ON CONFLICT (message_id, request_id) DO UPDATE SET {updates}
            """
            db.execute(sql, row)


def counts(rows: list[Row], since: str, sessions: list[str] | None) -> Counter[Any]:
    """Add up the messages that count, one by one."""
    found: Counter[Any] = Counter()
    for row in rows:
        others = [each for each in rows if each["message_id"] == row["message_id"]]
        newest = max((each["output"], each["request_id"]) for each in others)
        is_of_parent = not all(each["is_sidechain"] for each in others)
        is_copy = is_of_parent or newest > (row["output"], row["request_id"])
        if row["is_sidechain"] and is_copy:
            continue
        if row["created_at"] >= since and (sessions is None or row["session_id"] in sessions):
            tokens = Tokens(*(row[name] for name in COUNTS))
            rate = Rate(row["model"], "2026-11-24", row["speed"], row["region"], tokens.band)
            key = (row["session_id"], row["agent_id"], rate)
            found[(*key, "messages")] += 1
            found.update({(*key, name): value for name, value in tokens._asdict().items()})
    return +found


def charged(store: Listings, since: str, sessions: list[str] | None) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for charge in charges(store, since, sessions):
        key = (charge.session, charge.agent, charge.rate)
        found[(*key, "messages")] += charge.messages
        found.update({(*key, name): value for name, value in charge.tokens._asdict().items()})
    return +found


def test_sums_equal_the_messages_after_every_kind_of_change(db: Database) -> None:
    chance = random.Random(20261124)
    for turn in range(30):
        for _ in range(10):
            change(db, chance)
        with listings(db.path) as store:
            rows = store.rows("SELECT * FROM usage", {})
            for since in ("", f"2026-11-24T01:{2 * turn:02}:00.000Z", "2026-11-24T01:30:00.000Z"):
                for sessions in (None, ["s0", "s2"]):
                    expected = counts(rows, since, sessions)
                    assert charged(store, since, sessions) == expected
    assert expected
    db.execute("DELETE FROM usage", {})
    with listings(db.path) as store:
        assert store.rows("SELECT * FROM usage_sums", {}) == []


def insert_messages(db: Database, changes: list[Row]) -> None:
    row = random_message(random.Random(1)) | dict.fromkeys(COUNTS, 0) | {"is_sidechain": 0}
    names, values = ", ".join(COLUMNS), ", ".join(f":{name}" for name in COLUMNS)
    for number, changed in enumerate(changes):
        sql = f"INSERT INTO usage ({names}) VALUES ({values})"
        db.execute(sql, row | changed | {"message_id": f"m{number}"})


def test_a_quarter_of_an_hour_is_a_stored_time_of_the_same_day(db: Database) -> None:
    ends = {"2026-11-24T23:59:59.999Z": "2026-11-24T23:45:00.000Z", "": "", "never": "never"}
    insert_messages(db, [{"created_at": at} for at in ends])
    found = db.rows("SELECT began FROM usage_sums", {})
    assert {each["began"] for each in found} == {*ends.values()}


def test_each_band_is_summed_apart(db: Database) -> None:
    insert_messages(db, [{"input": size + 1} for size in (0, *BANDS)])
    found = db.rows("SELECT band FROM usage_sums ORDER BY band", {})
    assert [each["band"] for each in found] == [0, *BANDS]
