"""The columns of `usage_sums`, computed from rows of `usage` as the triggers of schema.sql do."""

_COUNTS = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h", "web_searches")
_KEY = ("session_id", "began", "agent_id", "model", "speed", "region", "band")


def _quarter(row: str) -> str:
    at = f"{row}.created_at"
    minutes = f"printf('%02d', CAST(substr({at}, 15, 2) AS INT) / 15 * 15)"
    return f"""CASE WHEN {at} GLOB '*-*-*T??:??:*'
    THEN substr({at}, 1, 14) || {minutes} || ':00.000Z' ELSE {at} END"""


def band(row: str) -> str:
    """Return SQL for the prompt band of a row's message, as in `hivepipe.costs.tokens`."""
    parts = ("input", "cache_read", "cache_write_5m", "cache_write_1h")
    prompt = " + ".join(f"{row}.{name}" for name in parts)
    return f"CASE WHEN {prompt} > 200000 THEN 200000 WHEN {prompt} > 100000 THEN 100000 ELSE 0 END"


def summed(row: str) -> str:
    """Return SQL that computes the columns of `usage_sums` from a row of `usage`."""
    own = {"began": _quarter(row), "band": band(row)}
    key = ", ".join(own.get(name, f"{row}.{name}") + f" AS {name}" for name in _KEY)
    return f"{key}, 1 AS messages, {', '.join(f'{row}.{name}' for name in _COUNTS)}"
