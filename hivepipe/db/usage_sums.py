"""Sums of the stored usage, updated by triggers. So a page need not add up all messages.

A sum covers the messages of one session, agent and rate within a quarter of an hour, because the
days of all time zones begin at a quarter. The table `repeated_messages` lists messages that have
rows of several requests.
"""

_COUNTS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "web_searches")
_KEY = ("session_id", "began", "agent_id", "model", "speed", "region", "band")


def _quarter(row: str) -> str:
    at = f"{row}.created_at"
    minutes = f"printf('%02d', CAST(substr({at}, 15, 2) AS INT) / 15 * 15)"
    return f"""CASE WHEN {at} GLOB '*-*-*T??:??:*'
    THEN substr({at}, 1, 14) || {minutes} || ':00.000Z' ELSE {at} END"""


def band(row: str) -> str:
    """Return SQL for the band of a message, as `hivepipe.costs.tokens` defines it."""
    parts = ("input", "cache_read", "cache_write_5m", "cache_write_1h")
    prompt = " + ".join(f"{row}.{name}" for name in parts)
    return f"CASE WHEN {prompt} > 200000 THEN 200000 WHEN {prompt} > 100000 THEN 100000 ELSE 0 END"


def summed(row: str) -> str:
    """Return SQL that computes the columns of `usage_sums` from a row of `usage`."""
    own = {"began": _quarter(row), "band": band(row)}
    key = ", ".join(own.get(name, f"{row}.{name}") + f" AS {name}" for name in _KEY)
    return f"{key}, 1 AS messages, {', '.join(f'{row}.{name}' for name in _COUNTS)}"


_IS_SUM = " AND ".join(
    f"{name} = {({'began': _quarter('old'), 'band': band('old')}).get(name, f'old.{name}')}"
    for name in _KEY
)
_ADD = f"""
  INSERT INTO usage_sums SELECT {summed("new")} WHERE true
    ON CONFLICT ({", ".join(_KEY)}) DO UPDATE SET messages = messages + 1,
      {", ".join(f"{name} = {name} + excluded.{name}" for name in _COUNTS)};
  INSERT INTO repeated_messages SELECT new.message_id WHERE EXISTS (
      SELECT 1 FROM usage WHERE message_id = new.message_id AND request_id <> new.request_id
        AND (is_sidechain OR new.is_sidechain))
    ON CONFLICT DO NOTHING;"""
_SUBTRACT = f"""
  UPDATE usage_sums SET messages = messages - 1,
      {", ".join(f"{name} = {name} - old.{name}" for name in _COUNTS)}
    WHERE {_IS_SUM};
  DELETE FROM usage_sums WHERE messages = 0 AND {_IS_SUM};"""

USAGE_SUMS = f"""
CREATE TABLE usage_sums (
  session_id TEXT NOT NULL, began TEXT NOT NULL, agent_id TEXT NOT NULL, model TEXT NOT NULL,
  speed TEXT NOT NULL, region TEXT NOT NULL, band INTEGER NOT NULL, messages INTEGER NOT NULL,
  {", ".join(f"{name} INTEGER NOT NULL" for name in _COUNTS)},
  PRIMARY KEY ({", ".join(_KEY)})) WITHOUT ROWID;
CREATE INDEX usage_sums_by_time ON usage_sums (began);
CREATE TABLE repeated_messages (message_id TEXT PRIMARY KEY) WITHOUT ROWID;
INSERT INTO usage_sums
  SELECT {", ".join(_KEY)}, sum(messages), {", ".join(f"sum({name})" for name in _COUNTS)}
  FROM (SELECT {summed("usage")} FROM usage) GROUP BY {", ".join(_KEY)};
INSERT INTO repeated_messages
  SELECT message_id FROM usage GROUP BY message_id HAVING count(*) > 1 AND max(is_sidechain);
CREATE TRIGGER usage_added AFTER INSERT ON usage BEGIN{_ADD}
END;
CREATE TRIGGER usage_removed AFTER DELETE ON usage BEGIN{_SUBTRACT}
END;
CREATE TRIGGER usage_changed AFTER UPDATE ON usage BEGIN{_SUBTRACT}{_ADD}
END;
"""
