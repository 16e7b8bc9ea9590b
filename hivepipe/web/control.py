"""What the page can change: failed jobs are retried or discarded, asked once, and recorded."""

import hmac
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from hivepipe.db.listings import Entry
from hivepipe.files.action_log import Action
from hivepipe.queue.failed_actions import settle
from hivepipe.queue.failed_jobs import failed_jobs
from hivepipe.reading.homes import KnownHome
from hivepipe.stack.lock import Stack
from hivepipe.times import now
from hivepipe.web.admission import form_token
from hivepipe.web.failed_choice import Choice, FormError

LONGEST_FORM = 1 << 20
_LISTED = 20


async def sent_form(request: Request, token: str) -> Choice:
    """Return what a form of this page asks for; FormError: it is too long, or of another page."""
    raw = bytearray()
    async for chunk in request.stream():
        raw += chunk
        if len(raw) > LONGEST_FORM:
            raise FormError("too many jobs are ticked: choose them by a filter")
    choice = Choice.of_form(bytes(raw))
    if not hmac.compare_digest(choice.token.encode(), form_token(token).encode()):
        raise FormError("this form is of an earlier run of `hivepipe web`: load the page again")
    return choice


@dataclass(frozen=True)
class Outcome:
    """An action that is done, or what the person is asked first."""

    done: Action | None
    question: Entry


def carry_out(known: KnownHome, choice: Choice, client: str) -> Outcome:
    """Do what was asked for, once it is confirmed; FormError, StackError.

    `client`: the address of the browser.
    """
    with failed_jobs(Stack.of(known.place()).address) as store:
        jobs = choice.jobs(store.jobs())
        if choice.is_sure:
            done = settle(store, known.home, choice.verb, jobs, f"page, {client}")
            return Outcome(done, {})
    shown: list[Any] = [
        {"id": job.id.encode("utf-8", "replace").decode(), "operation": job.operation,
         "reason": job.headline}
        for job in jobs[:_LISTED]
    ]  # fmt: skip
    until = choice.until or now()[0]
    asked = {"known": known, "choice": choice, "until": until, "jobs": shown, "number": len(jobs)}
    return Outcome(None, {**asked, "left_out": len(jobs) - len(shown)})


def after(known: KnownHome, done: Action) -> str:
    """Return the address of the page that tells what was done."""
    return f"/queues?{urlencode({'home': known.key, 'done': done.at})}"
