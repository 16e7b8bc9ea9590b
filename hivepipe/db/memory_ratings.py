"""Memories that were recalled into sessions, and ratings of their usefulness."""

import os

from hivepipe.db.database import Database, new_values
from hivepipe.db.listings import Listings
from hivepipe.redact import redact_text

LLM = "llm"  # the source of a rating


def name_of(path: str) -> str:
    """Return the name of a memory file as it is stored, redacted."""
    return redact_text(os.path.basename(path))


def record_retrieval(db: Database, session: str, memory: str, text: str, time: str) -> None:
    """Record that a memory was recalled.

    The table has one row per memory and session, with the newest text.
    """
    newest = f"""
        (session_id, memory) DO UPDATE SET {new_values(("text", "retrieved_at"))}
        WHERE excluded.retrieved_at >= retrievals.retrieved_at
    """
    row = {"session_id": session, "memory": memory, "text": text, "retrieved_at": time}
    db.insert("retrievals", row, newest)


def retrieved(store: Listings, session: str) -> list[tuple[str, str]]:
    """Return (name, text) of the memories that were recalled into a session."""
    sql = "SELECT memory, text FROM retrievals WHERE session_id = :session ORDER BY memory"
    return [(row["memory"], row["text"]) for row in store.rows(sql, {"session": session})]


def rate(db: Database, session: str, memory: str, useful: bool, time: str) -> None:
    """Record whether a memory was useful in a session. A newer rating replaces an older rating."""
    newest = f"""
        (session_id, memory, source) DO UPDATE SET {new_values(("useful", "rated_at"))}
        WHERE excluded.rated_at >= memory_ratings.rated_at
    """
    row = {"session_id": session, "memory": memory, "source": LLM, "useful": useful}
    db.insert("memory_ratings", {**row, "rated_at": time}, newest)


def rated_by(store: Listings, session: str) -> tuple[str, str]:
    """Return (rater, task) for a session. The rater is the session's profile, or else its id."""
    sql = """
        SELECT
          (SELECT profile_id FROM profile_sessions WHERE session_id = :session
            ORDER BY entered_at DESC, profile_id LIMIT 1) AS profile,
          (SELECT id FROM tasks WHERE session_id = :session
            ORDER BY assigned_time_ns DESC, id LIMIT 1) AS task
    """
    (row,) = store.rows(sql, {"session": session})
    return row["profile"] or session, row["task"] or ""


def usefulness(store: Listings) -> dict[str, int]:
    """Return memory -> number of useful ratings minus number of other ratings."""
    sql = """
        SELECT memory, SUM(CASE WHEN useful THEN 1 ELSE -1 END) AS score
        FROM memory_ratings GROUP BY memory
    """
    return {row["memory"]: row["score"] for row in store.rows(sql, {})}


def forget_retrievals(db: Database, memory: str) -> None:
    """Delete the stored text of a memory, in all sessions."""
    db.execute("DELETE FROM retrievals WHERE memory = :memory", {"memory": memory})
