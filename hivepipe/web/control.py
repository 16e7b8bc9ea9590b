"""The actions of the page: retry or discard failed jobs, and pause or resume the workers."""

import hmac
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request

from hivepipe.db.listings import Entry
from hivepipe.errors import HivepipeError
from hivepipe.files.action_log import Action, record
from hivepipe.queue.failed_actions import retry_or_discard
from hivepipe.queue.failed_jobs import failed_jobs
from hivepipe.reading.homes import KnownHome
from hivepipe.stack.lock import Stack
from hivepipe.stack.pausing import pause, resume
from hivepipe.times import now
from hivepipe.web.admission import form_token
from hivepipe.web.failed_choice import Choice, FormError

LONGEST_FORM = 1 << 20
_LISTED = 20


async def sent_form(request: Request, token: str) -> Choice:
    """Return the choice of a submitted form; FormError if it is too long or from another page."""
    choice = Choice.of_form(await _content(request))
    _refuse_other_pages(choice.token, token)
    return choice


async def sent_switch(request: Request, token: str) -> str:
    """Return `pause` or `resume` from a submitted form, or raise FormError."""
    try:
        fields = parse_qs((await _content(request)).decode(), max_num_fields=10)
    except ValueError:
        raise FormError("this is not a form of this page") from None
    _refuse_other_pages(fields.get("token", [""])[0], token)
    what = fields.get("what", [""])[0]
    if what not in ("pause", "resume"):
        raise FormError("a form says what to do: `pause` or `resume`")
    return what


async def _content(request: Request) -> bytes:
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > LONGEST_FORM:
            raise FormError("too many jobs are ticked: choose them by a filter")
    return bytes(raw)


def _refuse_other_pages(given: str, token: str) -> None:
    if not hmac.compare_digest(given.encode(), form_token(token).encode()):
        raise FormError("this form is of an earlier run of `hivepipe web`: load the page again")


@dataclass(frozen=True)
class Outcome:
    """A completed action, or the question to confirm first."""

    done: Action | None
    question: Entry


def carry_out(known: KnownHome, choice: Choice, client: str) -> Outcome:
    """Carry out a confirmed choice, or return the question; raise FormError or StackError.

    `client` is the address of the browser.
    """
    with failed_jobs(Stack.of(known.place()).address) as store:
        jobs = choice.jobs(store.jobs())
        if choice.is_sure:
            done = retry_or_discard(store, known.home, choice.verb, jobs, f"page, {client}")
            return Outcome(done, {})
    shown: list[Any] = [
        {"id": job.id.encode("utf-8", "replace").decode(), "operation": job.operation,
         "reason": job.headline}
        for job in jobs[:_LISTED]
    ]  # fmt: skip
    # A failure has a later time than now if the clock was set back since.
    until = choice.until or max(now()[0], *(job.failed_at for job in jobs))
    question = {
        "known": known,
        "choice": choice,
        "until": until,
        "jobs": shown,
        "number": len(jobs),
    }
    return Outcome(None, {**question, "left_out": len(jobs) - len(shown)})


def switch(known: KnownHome, what: str, client: str) -> None:
    """Pause or resume the workers of a home, and log who did it; raise HivepipeError."""
    place = known.place()
    if what == "pause":
        pause(place)
    else:
        resume(place)
    try:
        no_jobs: dict[str, Any] = {"chosen": 0, "done": 0, "operations": {}, "ids": []}
        record(known.home, by=f"page, {client}", action=what, **no_jobs)
    except OSError as error:
        text = f"{what} is done, but actions.log cannot be written"
        raise HivepipeError(f"{text}: {error}") from error


def after(known: KnownHome, done: Action) -> str:
    """Return the URL of the page that shows the result."""
    return f"/queues?{urlencode({'home': known.key, 'done': done.at})}"
