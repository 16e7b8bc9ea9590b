"""The actions of the page: retry or discard failed jobs, and pause or resume the workers."""

import hmac
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request

from hivepipe.db.listings import Entry
from hivepipe.files.action_log import record
from hivepipe.queue.failed_jobs import failed_jobs, retry_or_discard
from hivepipe.reading.homes import KnownHome
from hivepipe.stack.pausing import pause, resume
from hivepipe.stack.runtime_folder import Stack
from hivepipe.times import now
from hivepipe.web.authentication import form_token
from hivepipe.web.failed_choice import Choice, Fields, FormError

LONGEST_FORM = 1 << 20
_MOST_FIELDS = 10_000
_LISTED = 20
_SWITCHES = {"pause": pause, "resume": resume}


@dataclass(frozen=True)
class Outcome:
    """The URL to show after an action, or "" and the question to confirm before the action."""

    address: str
    question: Entry = field(default_factory=dict)


async def sent_form(request: Request, token: str) -> Fields:
    """Return the fields of a form. Raise FormError if it is invalid, long or of another page."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > LONGEST_FORM:
            raise FormError("too many jobs are ticked: choose them by a filter")
    try:
        fields = parse_qs(raw.decode(), max_num_fields=_MOST_FIELDS, keep_blank_values=True)
    except ValueError:
        raise FormError("this is not a form of this page") from None
    given = fields.get("token", [""])[0]
    if not hmac.compare_digest(given.encode(), form_token(token).encode()):
        raise FormError("this form is of an earlier run of `hivepipe web`: load the page again")
    return fields


def settle(known: KnownHome, fields: Fields, by: str) -> Outcome:
    """Retry or discard jobs, or return a question to ask. May raise FormError or StackError."""
    choice = Choice.of_form(fields)
    with failed_jobs(Stack.of(known.place()).address) as store:
        jobs = choice.jobs(store.jobs())
        if choice.is_sure:
            done = retry_or_discard(store, known.home, choice.verb, jobs, by)
            return Outcome(f"/queues?{urlencode({'home': known.key, 'done': done.at})}")
    shown: list[Any] = [
        {"id": job.id.encode("utf-8", "replace").decode(), "operation": job.operation,
         "reason": job.headline}
        for job in jobs[:_LISTED]
    ]  # fmt: skip
    question = {
        "known": known,
        "choice": choice,
        # A failure has a later time than now if the clock was set back since.
        "until": choice.until or max(now()[0], *(job.failed_at for job in jobs)),
        "jobs": shown,
        "number": len(jobs),
        "left_out": len(jobs) - len(shown),
    }
    return Outcome("", question)


def switch(known: KnownHome, fields: Fields, by: str) -> Outcome:
    """Pause or resume a home's workers, and log who did it. Raise HivepipeError on failure."""
    action = fields.get("what", [""])[0]
    if action not in _SWITCHES:
        raise FormError("the form must say what to do: `pause` or `resume`")
    _SWITCHES[action](known.place())
    record(known.home, action, by=by, action=action, chosen=0, done=0, operations={}, ids=[])
    return Outcome(f"/queues?home={known.key}")
