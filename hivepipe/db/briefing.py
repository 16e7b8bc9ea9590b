"""Queries for the briefings of sessions."""

from hivepipe.db.listings import Entry, Listings


def open_tasks(store: Listings, limit: int) -> list[Entry]:
    """Return the open tasks with the project of their last session, most recently updated first."""
    sql = """
        SELECT tasks.id, tasks.text, tasks.progress, tasks.progress_at, tasks.updated_at,
          tasks.session_id, sessions.project, sessions.status AS session_status
        FROM tasks LEFT JOIN sessions ON sessions.id = tasks.session_id
        WHERE tasks.status = 'open' ORDER BY tasks.updated_at DESC, tasks.id LIMIT :limit
    """
    return store.rows(sql, {"limit": limit})


def open_goals(store: Listings, limit: int) -> list[Entry]:
    """Return the open sessions, each with its last prompt and its last task."""
    sql = """
        SELECT sessions.id, sessions.project,
          (SELECT prompt FROM prompts WHERE session_id = sessions.id
            ORDER BY created_at DESC, id DESC LIMIT 1) AS prompt,
          (SELECT task_id FROM activity WHERE session_id = sessions.id
            ORDER BY last_active_at DESC LIMIT 1) AS task_id
        FROM sessions WHERE status IN ('active', 'paused')
        ORDER BY updated_at DESC, id LIMIT :limit
    """
    return store.rows(sql, {"limit": limit})


def last_sessions(store: Listings, each: int, limit: int) -> list[Entry]:
    """Return the sessions that ended last, up to `each` per project, newest first."""
    sql = """
        SELECT sessions.id, sessions.project, sessions.objective, sessions.ended_at,
          (SELECT prompt FROM prompts WHERE session_id = sessions.id
            ORDER BY created_at DESC, id DESC LIMIT 1) AS prompt,
          (SELECT summary FROM summaries WHERE session_id = sessions.id
            ORDER BY made_at DESC LIMIT 1) AS summary
        FROM sessions JOIN (
          SELECT id, ROW_NUMBER() OVER (PARTITION BY project ORDER BY ended_at DESC, id) AS number
          FROM sessions WHERE status = 'ended' AND project <> '') AS ended
        ON sessions.id = ended.id
        WHERE ended.number <= :each ORDER BY sessions.ended_at DESC, sessions.id LIMIT :limit
    """
    return store.rows(sql, {"each": each, "limit": limit})


def projects(store: Listings, limit: int) -> list[str]:
    """Return the projects of all sessions, most recently used first."""
    sql = """
        SELECT project FROM sessions WHERE project <> '' GROUP BY project
        ORDER BY MAX(updated_at) DESC LIMIT :limit
    """
    return [str(row["project"]) for row in store.rows(sql, {"limit": limit})]


def memory_folders(store: Listings, project: str) -> list[str]:
    """Return the folders of Claude Code's own memory of a project."""
    sql = """
        SELECT DISTINCT transcript_path FROM sessions
        WHERE project = :project AND transcript_path <> ''
    """
    paths = [str(row["transcript_path"]) for row in store.rows(sql, {"project": project})]
    return sorted({f"{path.rpartition('/')[0]}/memory" for path in paths if path[0] == "/"})


def delegations(store: Listings, since: str, limit: int) -> list[Entry]:
    """Return the agents spawned since a UTC time, newest first."""
    sql = """
        SELECT swarm_id, session_id, name, type, status, created_at FROM agents
        WHERE created_at >= :since ORDER BY created_at DESC, id LIMIT :limit
    """
    return store.rows(sql, {"since": since, "limit": limit})
