"""Memories that were recalled into sessions, and ratings of their usefulness."""

from hivepipe.db.database import Database
from hivepipe.db.listings import Listings

LLM = "llm"  # the source of a rating


def record_retrieval(db: Database, session: str, memory: str, text: str, time: str) -> None:
    """Record that a memory was recalled, once per name and session, with its newest text."""
    sql = """
        INSERT INTO retrievals (session_id, memory, text, retrieved_at)
        VALUES (:session, :memory, :text, :time)
        ON CONFLICT (session_id, memory) DO UPDATE SET
          text = excluded.text, retrieved_at = excluded.retrieved_at
        WHERE excluded.retrieved_at >= retrievals.retrieved_at
    """
    db.execute(sql, {"session": session, "memory": memory, "text": text, "time": time})


def retrieved(store: Listings, session: str) -> list[tuple[str, str]]:
    """Return name and text of the memories that were recalled into a session."""
    sql = "SELECT memory, text FROM retrievals WHERE session_id = :session ORDER BY memory"
    return [(row["memory"], row["text"]) for row in store.rows(sql, {"session": session})]


def rate(db: Database, session: str, memory: str, useful: bool, time: str) -> None:
    """Record whether a memory was useful in a session; the newest rating counts."""
    sql = """
        INSERT INTO memory_ratings (session_id, memory, source, useful, rated_at)
        VALUES (:session, :memory, :source, :useful, :time)
        ON CONFLICT (session_id, memory, source) DO UPDATE SET
          useful = excluded.useful, rated_at = excluded.rated_at
        WHERE excluded.rated_at >= memory_ratings.rated_at
    """
    parameters = {"session": session, "memory": memory, "source": LLM, "useful": useful}
    db.execute(sql, {**parameters, "time": time})


def rated_by(store: Listings, session: str) -> tuple[str, str]:
    """Return the rater of a session (its profile, else its id), and its task or ""."""
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
