"""The columns of a home's rows that are sent to the server, with their levels of sharing.

Characters that PostgreSQL rejects (NUL, lone surrogates) are replaced. In columns of numbers, other
values become NULL. Otherwise a row that cannot be stored would block all other rows.
"""

from functools import lru_cache
from typing import Any, NamedTuple
from zlib import crc32

from hivepipe.team.policy import Level

FAR_PAST = "1970-01-01"


class Shared(NamedTuple):
    """A shared table: `texts` and `numbers` are metadata; `hidden` texts need level `hidden_at`."""

    lookup: str  # SQL that finds row t by the parts of its key wanted.p0, wanted.p1, ...
    texts: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    reals: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    hidden_at: Level = "prompts"
    level: Level = "metadata"  # lowest level at which rows are sent
    session: str = "session_id"
    time: str = "created_at"  # decides whether retention keeps a row of a table without months

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns, with the hidden columns last."""
        return self.texts + self.numbers + self.reals + self.computed + self.hidden

    @property
    def selected(self) -> tuple[str, ...]:
        """Return the SQL expressions of the columns."""
        return (
            *(f"t.{name}" for name in self.texts),
            *(_INTEGER.format(f"t.{name}") for name in self.numbers),
            *(f"iif(abs(t.{name}) < 1e300, t.{name} + 0.0, NULL)" for name in self.reals),
            *(_COMPUTED[name] for name in self.computed),
            *(f"t.{name}" for name in self.hidden),
        )


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_TOKENS = _words("input output cache_read cache_write_5m cache_write_1h web_searches")
_BY_JOB = """
    (t.job_id = wanted.p1
      OR (t.job_id IS NULL AND t.id = CAST(substr(wanted.p1, 2) AS INTEGER)))
"""
_INTEGER = "iif(typeof({0}) = 'integer', {0}, NULL)"
# The parts of free texts that are sent as metadata: tokens and duration of an agent, and the tool
# for which a session waits for a permission.
_COMPUTED = {
    "waits_for": """
        iif(t.waits_for GLOB 'permission: *' AND t.waits_for NOT GLOB '* * *', t.waits_for,
          iif(t.waits_for <> '', 'an answer', t.waits_for))
    """,
    "metadata": """
        iif(json_valid(t.metadata), iif(json_type(t.metadata, '$.usage') = 'object',
          json_object('usage', json_object('tokens', {}, 'duration_ms', {})), NULL), NULL)
    """.format(
        *(
            _INTEGER.format(f"json_extract(t.metadata, '$.usage.{name}')")
            for name in ("tokens", "duration_ms")
        )
    ),
}
SHARED = {
    "sessions": Shared(
        "t.id = wanted.p0",
        _words(
            "id status model effort source client swarm_id created_at updated_at paused_at "
            "ended_at end_reason turn turn_ended_at"
        ),
        hidden=("objective",),
        session="id",
        time="updated_at",
    ),
    "instance_sessions": Shared(
        "t.id = wanted.p0",
        _words("id session_id instance_id status started_at last_seen"),
        _words("operation_count checkpoint_count"),
        time="last_seen",
    ),
    "agents": Shared(
        "t.id = wanted.p0",
        _words(
            "id session_id swarm_id type status model created_at began_at last_active "
            "completed_at deleted_at deleted_reason outcome tool_use_id"
        ),
        computed=("metadata",),
        hidden=_words("name role error"),
    ),
    "activity": Shared(
        "t.session_id = wanted.p0 AND t.since_ms = CAST(wanted.p1 AS INTEGER)",
        _words("session_id last_active_at last_work_at"),
        _words("since_ms calls failed denied warned open_calls turn_is_open"),
        computed=("waits_for",),
        time="last_active_at",
    ),
    "cost_states": Shared(
        "t.session_id = wanted.p0 AND t.started_ms = CAST(wanted.p1 AS INTEGER)",
        _words("session_id model created_at"),
        (*_words("started_ms duration_ms"), *_TOKENS),
    ),
    "summaries": Shared(
        "t.session_id = wanted.p0 AND t.state = wanted.p1",
        _words("session_id state made_at kind provider model reason harness"),
        _words("requests input_tokens output_tokens"),
        ("cost_usd",),
        hidden=_words("summary key_learnings files open_ends"),
        level="prompts",
        time="made_at",
    ),
    "usage": Shared(
        "t.message_id = wanted.p1 AND t.request_id = wanted.p2",
        _words("message_id request_id session_id agent_id created_at model speed region"),
        (*_words("is_sidechain is_replay"), *_TOKENS),
    ),
    "prompts": Shared(
        _BY_JOB,
        _words("session_id prompt_id created_at job_id"),
        hidden=("prompt",),
        level="prompts",
    ),
    "skill_uses": Shared(
        _BY_JOB,
        _words("session_id skill kind created_at prompt_id job_id"),
        ("success",),
        hidden=("arguments",),
    ),
    "session_logs": Shared(
        _BY_JOB,
        _words("session_id log_level created_at job_id"),
        hidden=_words("message data"),
        level="everything",
        hidden_at="everything",
    ),
}


def sent_form() -> int:
    """Return a checksum of all columns and levels; a change tells a home to send all rows again."""
    form = [(*each.selected, each.hidden, each.hidden_at, each.level) for each in SHARED.values()]
    return crc32(repr(form).encode())


def cleaned(content: Any) -> Any:
    """Return a JSON value with each text replaced by its `clean` form."""
    if isinstance(content, dict):
        return {name: cleaned(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [cleaned(value) for value in content]
    return clean(content) if isinstance(content, str | bytes) else content


def clean(value: str | bytes) -> str:
    """Return a text without characters that PostgreSQL rejects."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


@lru_cache(256)
def month_of(text: str) -> str:
    """Return the first day of a month like "2026-11", or FAR_PAST for any other text."""
    year, _, month = text.partition("-")
    is_month = len(text) == 7 and text.isascii() and year.isdigit() and month.isdigit()
    return f"{text}-01" if is_month and int(year) > 0 and 1 <= int(month) <= 12 else FAR_PAST
