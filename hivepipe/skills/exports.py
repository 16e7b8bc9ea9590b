"""skill-usage.json and skill-usage-index.json, in the predecessor's format.

The last entry of each list is the newest. Lists that would grow for ever are cut to the newest.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from hivepipe.skills.statistics import SkillStatistics

KEPT_SESSIONS = 100
KEPT_DAYS = 366
INDEXED_SESSIONS = 1000

Skills = Mapping[str, SkillStatistics]


def usage_json(skills: Skills) -> bytes:
    """Return skill-usage.json: the statistics of each skill."""
    return _json({"skills": {name: _entry(skill) for name, skill in skills.items()}})


def index_json(skills: Skills) -> bytes:
    """Return skill-usage-index.json: sessions and days by skill, and skills by session and day."""
    days: dict[str, list[str]] = {}
    sessions: dict[str, list[str]] = {}
    newest: dict[str, str] = {}
    for name, skill in skills.items():
        for day in sorted(skill.daily)[-KEPT_DAYS:]:
            days.setdefault(day, []).append(name)
        for session, time in skill.sessions.items():
            sessions.setdefault(session, []).append(name)
            newest[session] = max(newest.get(session, ""), time)
    latest = sorted(sessions, key=lambda session: (newest[session], session))
    return _json(
        {
            "skills": {
                name: {
                    "sessions": list(skill.sessions)[-KEPT_SESSIONS:],
                    "days": sorted(skill.daily)[-KEPT_DAYS:],
                }
                for name, skill in skills.items()
            },
            "days": dict(sorted(days.items())),
            "sessions": {session: sessions[session] for session in latest[-INDEXED_SESSIONS:]},
        }
    )


def _entry(skill: SkillStatistics) -> dict[str, Any]:
    return {
        "count": skill.count,
        "last_used": skill.last_used,
        "invocations": [
            {
                "timestamp": use.time,
                "session_id": use.session,
                "context": use.arguments,
                "success": use.success,
            }
            for use in skill.invocations
        ],
        "sessions": list(skill.sessions)[-KEPT_SESSIONS:],
        "session_count": len(skill.sessions),
        "success_rate": skill.success_rate,
        "daily": {day: skill.daily[day] for day in sorted(skill.daily)[-KEPT_DAYS:]},
    }


def _json(content: dict[str, Any]) -> bytes:
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
