"""Makes a summary: by a language model where that was agreed to and is paid for, else a plain one.

permission   what the user agreed to, a credential, a price, what is left of the day
call         one question, in a process that ends
settlement   what it came to; whether another try may succeed
"""

import logging
import os
import random
import time
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

from hivepipe import retry
from hivepipe.costs.prices import PriceTable
from hivepipe.costs.tokens import Tokens
from hivepipe.errors import (
    CredentialsError,
    PricesError,
    StoppedError,
    SummaryError,
    TryLaterError,
)
from hivepipe.home import short_hash
from hivepipe.intake.fate import lives
from hivepipe.price_table import prices_in_force
from hivepipe.redaction import redact_text
from hivepipe.settings import switched_off
from hivepipe.store.spending import MICRO, Amount, Spending, spending
from hivepipe.store.summaries import COMPACTION, LLM, PLAIN, Summary
from hivepipe.stored_times import now
from hivepipe.summaries import terms
from hivepipe.summaries.call import MOST_REQUESTS, UNBILLED, Reply, ask
from hivepipe.summaries.consent import OFF, is_enabled, objection
from hivepipe.summaries.excerpt import Excerpt
from hivepipe.summaries.plain import plain_summary, plain_text_summary
from hivepipe.summaries.providers import Offer, find_offer
from hivepipe.summaries.question import Answer, Memory, Question, question_of

FEWEST_MESSAGES = 2
FEWEST_BYTES = 200
MOST_TRIES = 4
LONGEST_DELAY_SECS = 3600.0
CALL_IS_OVER_SECS = 900.0

logger = logging.getLogger("hivepipe.summaries")


class Made(NamedTuple):
    """A summary, and which of the memories that were brought into the session were of use."""

    summary: Summary
    useful: dict[str, bool]


class Material(NamedTuple):
    """What there is to summarise."""

    session: str
    excerpt: Excerpt
    meta: dict[str, Any]
    harness: str = "claude-code"
    memories: tuple[Memory, ...] = ()


class Summariser:
    """Makes summaries: by a language model where that is agreed to, else plain ones."""

    def __init__(
        self,
        home: str,
        keep: Callable[[Made], None],
        should_stop: Callable[[], bool] = lambda: False,
        *,
        is_asked: bool = False,
    ) -> None:
        """`keep`: takes each summary, before a call for it counts as answered.

        `is_asked`: a person wants this one now, whatever became of it before.
        """
        self._home = home
        self._keep = keep
        self._should_stop = should_stop
        self._is_asked = is_asked

    def summarise(self, material: Material) -> Made:
        """Return a summary that was kept; TryLaterError: it is worth while to wait for one."""
        try:
            self._refuse(material)
            question = question_of(material.excerpt.text, material.memories)
            return self._by_model(material, self.offer(), question)
        except SummaryError as error:
            made = self._plain(material, str(error))
            self._keep(made)
            return made

    def _refuse(self, material: Material) -> None:
        """Raise SummaryError if nobody is to be asked about this."""
        if not is_enabled(self._home):
            raise SummaryError(OFF)
        if switched_off("HIVEPIPE_USE_QUEUE") and not self._is_asked:
            raise SummaryError("without the queue nobody can wait for an answer")
        excerpt = material.excerpt
        if excerpt.messages < FEWEST_MESSAGES or len(excerpt.text.encode()) < FEWEST_BYTES:
            raise SummaryError("too short to ask anybody about")

    def offer(self) -> Offer:
        """Return who is asked; SummaryError says why nobody is."""
        try:
            offers = [find_offer(), find_offer(with_environment=False)]
        except CredentialsError as error:
            raise SummaryError(str(error)) from error
        found = [offer for offer in offers if offer is not None]
        if not found:
            raise SummaryError("there is no credential: `hivepipe credentials set NAME`")
        refused = [objection(self._home, offer) for offer in found]
        if "" not in refused:
            raise SummaryError(refused[0])
        return found[refused.index("")]  # a key of this shell does not change what was agreed to

    def _by_model(self, material: Material, offer: Offer, question: Question) -> Made:
        each = self._most(offer, question)
        offer = _with_secret(offer)
        subject = self._subject(material)
        with spending() as ledger:
            tried = self._tried(ledger, subject)
            id, granted = ledger.reserve(
                subject,
                each,
                MOST_REQUESTS,
                _caps(),
                terms.day_began(),
                provider=offer.provider.kind,
                model=offer.model,
                home=short_hash(self._home),
            )
        if not granted:
            raise SummaryError("what a day may cost is spent: see `hivepipe costs`")
        reply = ask(
            offer,
            question,
            requests=granted,
            timeout_secs=terms.timeout_secs(),
            dollars=granted * self._budget_usd(offer, question),
            should_stop=self._should_stop,
        )
        if reply.answer is None:
            self._settle(id, offer, reply, each)
            raise self._failure(offer, reply, tried + 1)
        made = self._summary(material, offer, reply, each)
        try:
            self._keep(made)  # before it is settled: a kill in between loses nothing that was paid
        finally:
            self._settle(id, offer, reply, each)
        return made

    def _settle(self, id: int, offer: Offer, reply: Reply, each: Amount) -> None:
        amount = self._amount(offer, reply, each)
        with spending() as ledger:
            ledger.settle(id, answered=reply.answer is not None, amount=amount)

    def _most(self, offer: Offer, question: Question) -> Amount:
        tokens = terms.most_tokens(question)
        return Amount(1, tokens.prompt + tokens.output, self._micro_usd(offer, tokens))

    def _budget_usd(self, offer: Offer, question: Question) -> float:
        return terms.budget_usd(offer, self._prices(), question)

    def _prices(self) -> PriceTable:
        try:
            return prices_in_force(self._home)
        except PricesError as error:
            raise SummaryError(str(error)) from error

    def _micro_usd(self, offer: Offer, tokens: Tokens) -> int:
        cost = terms.price(offer, self._prices(), tokens)
        if cost is None:
            raise SummaryError(f"no price of {offer.model} is known: add it to prices.toml")
        return int(cost * MICRO)

    def _amount(self, offer: Offer, reply: Reply, each: Amount) -> Amount:
        """Return what was used; of a request of which nobody said so, the most that it can be."""
        used = reply.used
        tokens = Tokens(used.input_tokens or 0, used.output_tokens or 0)
        micro_usd = self._micro_usd(offer, tokens)
        if used.cost_usd is not None:
            micro_usd = max(micro_usd, int(used.cost_usd * MICRO))
        unsaid = 0 if reply.failure in UNBILLED else used.unsaid
        return Amount(
            used.requests,
            tokens.input + tokens.output + unsaid * each.tokens,
            micro_usd + unsaid * each.micro_usd,
        )

    def _subject(self, material: Material) -> str:
        """Name the call: one for each state of a session, but a new one if a person asks."""
        said = f"{self._home}\0{material.session}\0{material.excerpt.state}"
        if self._is_asked:
            said += f"\0{time.time_ns()}"
        return blake2b(said.encode(), digest_size=16).hexdigest()

    def _tried(self, ledger: Spending, subject: str) -> int:
        """Return how often it failed before; SummaryError: it is not to be tried again."""
        tries = ledger.tries(subject)
        if tries.answered:
            raise SummaryError("it was asked before, and the answer was lost")
        if any(_is_at_work(pid, at) for pid, at in tries.open):
            raise TryLaterError("another process asks just now", 60)
        if tries.open:
            ledger.give_up(subject)
            raise SummaryError("it was asked before, and the process was killed")
        if tries.failed >= MOST_TRIES:
            raise SummaryError(f"{tries.failed} tries failed")
        return tries.failed

    def _failure(self, offer: Offer, reply: Reply, tries: int) -> Exception:
        """Return what follows from a failure."""
        reason = f"{offer.provider.kind}: {reply.failure}: {reply.reason}"
        if reply.failure == "stopped":
            return StoppedError()
        if not reply.may_succeed_later or self._is_asked or tries >= MOST_TRIES:
            return SummaryError(reason)
        delay = retry.llm_delay_secs(tries, random.random(), reply.retry_after_secs or 0.0)
        if delay > LONGEST_DELAY_SECS:
            return SummaryError(reason)
        return TryLaterError(reason, delay)

    def _summary(self, material: Material, offer: Offer, reply: Reply, each: Amount) -> Made:
        answer, used = reply.answer or Answer(""), reply.used
        return _made(
            material,
            LLM,
            answer,
            provider=offer.provider.kind,
            model=offer.model,
            requests=used.requests,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost_usd=self._amount(offer, reply, each).dollars,
        )

    def _plain(self, material: Material, reason: str) -> Made:
        if reason != OFF:
            logger.warning("session %s: a plain summary: %s", material.session, reason)
        answer = plain_summary(material.meta) if material.meta else _of_text(material)
        return _made(material, PLAIN, answer, reason=reason)


def _of_text(material: Material) -> Answer:
    return plain_text_summary(material.excerpt.text, material.harness)


def of_compaction(material: Material) -> Made | None:
    """Return Claude Code's own summary of a compaction; None: there was none."""
    words = material.meta.get("compact_summary")
    if not isinstance(words, str) or not words:
        return None
    digest = blake2b(words.encode(), digest_size=12).hexdigest()
    state = Excerpt(f"{COMPACTION} {digest}", 0)  # of its own: the session's will be summarised
    named = material._replace(excerpt=state)
    return _made(named, PLAIN, Answer(words), provider=COMPACTION, reason="by Claude Code, free")


def _with_secret(offer: Offer) -> Offer:
    try:
        return offer.with_secret()
    except CredentialsError as error:
        raise SummaryError(str(error)) from error


def _made(material: Material, kind: str, answer: Answer, **more: Any) -> Made:
    clean = {
        name: tuple(map(redact_text, getattr(answer, name)))
        for name in ("key_learnings", "files", "open_ends")
    }
    made = Summary(
        state=material.excerpt.state,
        made_at=now()[0],
        kind=kind,
        summary=redact_text(answer.summary),
        harness=material.harness,
        **{**clean, **more},
    )
    return Made(made, answer.useful)


def _caps() -> Amount:
    caps = terms.caps()
    return Amount(caps.calls, caps.tokens, int(caps.dollars * MICRO))


def _is_at_work(pid: int, at: float) -> bool:
    is_over = pid == os.getpid() or time.time() - at > CALL_IS_OVER_SECS
    return not is_over and lives(pid, "")
