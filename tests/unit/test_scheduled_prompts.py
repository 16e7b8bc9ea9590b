"""A prompt that `/loop` or a cron entry sent is no prompt of the user's."""

from typing import Any

import pytest

from hivepipe.db import history
from hivepipe.db.database import Database
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.archive import RecordUsage
from hivepipe.operations.usage import record_usage, usage_jobs
from tests.unit.test_transcripts import totals_of_records

JOB = Origin(id="j1", operation="record_usage", event_time_ns=10**18, session="s-1")
DEPLOY = "Look at the deploy"
BY_CLAUDE_CODE: dict[str, Any] = {"promptSource": "system", "isMeta": True}


def line(words: str, prompt: str, **more: Any) -> dict[str, Any]:
    fields = {"sessionId": "s-1", "uuid": f"{prompt} {words}", "promptId": prompt, **more}
    return {"type": "user", "message": {"role": "user", "content": words}, **fields}


def insert(db: Database, *prompts: tuple[str, str, str]) -> None:
    for number, (session, prompt, words) in enumerate(prompts):
        origin = Origin(id=f"p{number}", operation="", event_time_ns=10**18, session=session)
        history.insert_prompt(db, origin, prompt, words)


def left_after(db: Database, *lines: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the prompts that are left when a transcript with these lines was read."""
    for job in usage_jobs([], totals_of_records(*lines).take_facts()):
        record_usage(db, JOB, RecordUsage.read(job.payload))
    rows = db.rows("SELECT session_id, prompt_id, prompt FROM prompts ORDER BY id")
    return [(row["session_id"], row["prompt_id"], row["prompt"]) for row in rows]


def test_a_scheduled_prompt_is_deleted_once_the_transcript_names_it(db: Database) -> None:
    """The hook's event of such a prompt does not differ from others in 2.1.197 and 2.1.332."""
    insert(db, *(rows := [("s-1", "p-1", DEPLOY), ("s-1", "p-2", DEPLOY), ("s-2", "p-2", DEPLOY)]))
    lines = [
        line(DEPLOY, "p-1", promptSource="typed", origin={"kind": "human"}),
        line("The text of a skill", "p-1", isMeta=True),
        line(DEPLOY, "p-2", **BY_CLAUDE_CODE),
    ]
    assert left_after(db, *lines) == [rows[0], rows[2]]
    totals = totals_of_records(*lines)
    assert totals.messages == 1
    assert totals.take_facts()
    assert not totals.take_facts()


LONG = "a word " * 100


@pytest.mark.parametrize(
    ("scheduled", "typed"), [(DEPLOY, "Mind it"), (DEPLOY, f"{DEPLOY}."), (LONG, f"Now {LONG}")]
)
def test_what_the_user_types_in_a_scheduled_turn_is_kept(
    db: Database, scheduled: str, typed: str
) -> None:
    """The event of both has the id of the turn in 2.1.332."""
    insert(db, ("s-1", "p-1", scheduled), ("s-1", "p-1", typed))
    assert left_after(db, line(scheduled, "p-1", **BY_CLAUDE_CODE)) == [("s-1", "p-1", typed)]


def test_what_a_person_says_in_a_channel_is_kept(db: Database) -> None:
    """Claude Code marks it as its own, too."""
    insert(db, said := ("s-1", "p-1", '<channel source="chat">Mind it</channel>'))
    origin = {"kind": "channel", "server": "chat"}
    assert left_after(db, line(said[2], "p-1", origin=origin, **BY_CLAUDE_CODE)) == [said]
