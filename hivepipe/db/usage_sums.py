"""The columns of `usage_sums`, computed from rows of `usage` as the triggers of schema.sql do."""

_COUNTS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "web_searches")
_BEGAN = """CASE WHEN usage.created_at GLOB '*-*-*T??:??:*'
    THEN substr(usage.created_at, 1, 14)
      || printf('%02d', CAST(substr(usage.created_at, 15, 2) AS INT) / 15 * 15) || ':00.000Z'
    ELSE usage.created_at END"""
_PROMPT = "usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h"
_SAME = ("session_id", "agent_id", "model", "speed", "region", *_COUNTS)

# SQL for the prompt band of a message, as in `hivepipe.costs.tokens`.
BAND = f"CASE WHEN {_PROMPT} > 200000 THEN 200000 WHEN {_PROMPT} > 100000 THEN 100000 ELSE 0 END"
# SQL that computes the columns of `usage_sums` from a row of `usage`.
SUMMED = f"{_BEGAN} AS began, {BAND} AS band, 1 AS messages, usage.{', usage.'.join(_SAME)}"
