"""A prompt that `/loop` or a cron entry sent is no prompt of the user's."""

from typing import Any

from hivepipe.db import history
from hivepipe.db.database import Database
from hivepipe.jobs.origin import Origin
from hivepipe.operations.families.archive import RecordUsage
from hivepipe.operations.usage import record_usage, usage_jobs
from tests.unit.test_transcripts import totals_of_records

JOB = Origin(id="j1", operation="record_usage", event_time_ns=10**18, session="s-1")


def line(words: str, prompt: str, **more: Any) -> dict[str, Any]:
    fields = {"sessionId": "s-1", "uuid": f"{prompt} {words}", "promptId": prompt, **more}
    return {"type": "user", "message": {"role": "user", "content": words}, **fields}


def test_a_scheduled_prompt_is_deleted_once_the_transcript_names_it(db: Database) -> None:
    """The hook's event of such a prompt does not differ from others in 2.1.197 and 2.1.332."""
    for number, (session, prompt) in enumerate((("s-1", "p-1"), ("s-1", "p-2"), ("s-2", "p-2"))):
        origin = Origin(id=f"p{number}", operation="", event_time_ns=10**18, session=session)
        history.insert_prompt(db, origin, prompt, "Look at the deploy")
    totals = totals_of_records(
        line("Look at the deploy", "p-1", promptSource="typed", origin={"kind": "human"}),
        line("The text of a skill", "p-1", isMeta=True),
        line("Look at the deploy", "p-2", promptSource="system", isMeta=True),
    )
    for job in usage_jobs([], totals.take_facts()):
        record_usage(db, JOB, RecordUsage.read(job.payload))
    rows = db.rows("SELECT session_id, prompt_id FROM prompts ORDER BY id")
    assert [tuple(row) for row in rows] == [("s-1", "p-1"), ("s-2", "p-2")]
    assert totals.messages == 1
    assert not totals.take_facts()
