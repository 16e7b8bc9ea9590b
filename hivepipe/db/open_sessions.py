"""Open sessions and their instances, for the code that ends them."""

from hivepipe.db.database import Database, Row


def open_sessions(db: Database) -> list[Row]:
    """Return a row for each open session and instance, by session and the instance's last event.

    A session without an instance has one row with `instance_id` NULL.
    """
    sql = """
        SELECT sessions.id AS session_id, sessions.project, sessions.transcript_path,
          sessions.swarm_id, sessions.updated_at, sessions.state_time_ns,
          sessions.last_end_ns, sessions.checkpoint_time_ns, mine.instance_id,
          mine.status AS assignment,
          mine.assigned_time_ns, mine.last_seen, instances.id, instances.pid,
          instances.pid_started, instances.host, instances.boot, instances.pid_space
        FROM sessions
        LEFT JOIN instance_sessions AS mine ON mine.session_id = sessions.id
        LEFT JOIN instances ON instances.id = mine.instance_id
        WHERE sessions.status IN ('active', 'paused')
        ORDER BY sessions.id, mine.last_seen, mine.instance_id
    """
    return db.rows(sql)


def running_instances(db: Database) -> list[Row]:
    """Return the instances whose processes may still run."""
    return db.rows("SELECT * FROM instances WHERE status = 'running' ORDER BY id")


def unconcluded_sessions(db: Database, before_ns: int) -> list[Row]:
    """Return the sessions that ended before a time and whose follow-up work no job has claimed."""
    sql = """
        SELECT id, project, transcript_path FROM sessions
        WHERE status = 'ended' AND concluded_ns < last_end_ns AND last_end_ns < :before
        ORDER BY id
    """
    return db.rows(sql, {"before": before_ns})


def open_turns(db: Database) -> list[Row]:
    """Return a row for each instance in an active session whose turn is open."""
    sql = """
        SELECT sessions.id AS session_id, sessions.project, sessions.transcript_path,
          sessions.state_time_ns, activity.last_active_at, activity.waits_for, instances.*
        FROM sessions
        JOIN instance_sessions AS mine ON mine.session_id = sessions.id AND mine.status = 'active'
        JOIN instances ON instances.id = mine.instance_id
        JOIN activity ON activity.session_id = sessions.id
        WHERE sessions.status = 'active' AND activity.turn_is_open
          AND activity.last_active_at = (
            SELECT MAX(last_active_at) FROM activity WHERE session_id = sessions.id)
        ORDER BY sessions.id, instances.id
    """
    return db.rows(sql)
