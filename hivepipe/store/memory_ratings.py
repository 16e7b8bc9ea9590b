"""Which memories were brought into a session, and whether they were of use there."""

from hivepipe.store.database import Database
from hivepipe.store.listings import Listings

LLM = "llm"  # a source of ratings


def record_retrieval(db: Database, session: str, memory: str, text: str, time: str) -> None:
    """Note that a memory was brought in; each name once, as it was the last time."""
    sql = """
        INSERT INTO retrievals (session_id, memory, text, retrieved_at)
        VALUES (:session, :memory, :text, :time)
        ON CONFLICT (session_id, memory) DO UPDATE SET
          text = excluded.text, retrieved_at = excluded.retrieved_at
        WHERE excluded.retrieved_at >= retrievals.retrieved_at
    """
    db.execute(sql, {"session": session, "memory": memory, "text": text, "time": time})


def retrieved(store: Listings, session: str) -> list[tuple[str, str]]:
    """Return name and text of the memories that were brought into a session."""
    sql = "SELECT memory, text FROM retrievals WHERE session_id = :session ORDER BY memory"
    return [(row["memory"], row["text"]) for row in store.rows(sql, {"session": session})]


def rate(db: Database, session: str, memory: str, useful: bool, time: str) -> None:
    """Say whether a memory was of use in a session; the newest word counts."""
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
    """Return for whom a session rates: its profile, else itself, and its task, if it has one."""
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
    """Return for each memory how often it was of use, less how often it was not."""
    sql = """
        SELECT memory, SUM(CASE WHEN useful THEN 1 ELSE -1 END) AS score
        FROM memory_ratings GROUP BY memory
    """
    return {row["memory"]: row["score"] for row in store.rows(sql, {})}


def forget_retrievals(db: Database, memory: str) -> None:
    """Keep nothing of what a memory said, in whatever session."""
    db.execute("DELETE FROM retrievals WHERE memory = :memory", {"memory": memory})
