"""Make a summary: by a language model with consent and within the budget, else from metadata.

permission   consent, a credential, a price, and the rest of the day's budget
call         one question, asked in a separate process
settlement   the actual cost, and whether another attempt may succeed
"""

import logging
import os
import random
import time
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

from hivepipe.costs.price_table import prices_in_force
from hivepipe.costs.tokens import Tokens
from hivepipe.db.spending import MICRO, Amount, Spending, spending
from hivepipe.db.summaries import COMPACTION, LLM, PLAIN
from hivepipe.errors import (
    CredentialsError,
    DamagedLedgerError,
    PricesError,
    StoppedError,
    SummaryError,
    TryLaterError,
)
from hivepipe.home import short_hash
from hivepipe.hook.alive import lives
from hivepipe.jobs import retry
from hivepipe.jobs.summary import RecordSummary
from hivepipe.redact import redact_text
from hivepipe.settings import switched_off
from hivepipe.summaries import terms
from hivepipe.summaries.call import MOST_REQUESTS, UNBILLED, Reply, ask
from hivepipe.summaries.consent import OFF, is_enabled, objection
from hivepipe.summaries.excerpt import Excerpt
from hivepipe.summaries.plain import plain_summary, plain_text_summary
from hivepipe.summaries.providers import Offer, find_offer
from hivepipe.summaries.question import Answer, Memory, Question, question_of
from hivepipe.times import now

FEWEST_MESSAGES = 2
FEWEST_BYTES = 200
MOST_TRIES = 4
LONGEST_DELAY_SECS = 3600.0
CALL_IS_OVER_SECS = 900.0

logger = logging.getLogger("hivepipe.summaries")


class SummaryInput(NamedTuple):
    session: str
    excerpt: Excerpt
    meta: dict[str, Any]
    harness: str = "claude-code"
    memories: tuple[Memory, ...] = ()


class Summariser:
    """Makes summaries: by a language model if the user consented, else from metadata."""

    def __init__(
        self,
        home: str,
        keep: Callable[[RecordSummary], None],
        should_stop: Callable[[], bool] = lambda: False,
        *,
        is_asked: bool = False,
    ) -> None:
        """Set up; `keep` stores a summary before the model's call is recorded as answered.

        With `is_asked`, a person requests the summary, so earlier attempts do not count.
        """
        self._home = home
        self._keep = keep
        self._should_stop = should_stop
        self._is_asked = is_asked

    def summarise(self, summary_input: SummaryInput) -> RecordSummary:
        """Make, store and return a summary.

        Raise TryLaterError if a later attempt may succeed, and StoppedError if the process must
        end.
        """
        try:
            self._refuse(summary_input)
            question = question_of(summary_input.excerpt.text, summary_input.memories)
            return self._by_model(summary_input, self._offer(), question)
        except (SummaryError, CredentialsError, PricesError, DamagedLedgerError) as error:
            result = self._plain(summary_input, str(error))
            self._keep(result)
            return result

    def _refuse(self, summary_input: SummaryInput) -> None:
        """Raise SummaryError if it is not allowed to ask a model about this input."""
        if not is_enabled(self._home):
            raise SummaryError(OFF)
        if switched_off("HIVEPIPE_USE_QUEUE") and not self._is_asked:
            raise SummaryError("use_queue is off: hooks do not wait for a language model")
        excerpt = summary_input.excerpt
        if excerpt.messages < FEWEST_MESSAGES or len(excerpt.text.encode()) < FEWEST_BYTES:
            raise SummaryError("too short for a language model")

    def _offer(self) -> Offer:
        """Return the provider to ask. Raise SummaryError if there is no provider to ask."""
        found = [offer for offer in (find_offer(), find_offer(with_environment=False)) if offer]
        if not found:
            raise SummaryError("there is no credential: `hivepipe credentials set NAME`")
        refused = [objection(self._home, offer) for offer in found]
        if "" not in refused:
            raise SummaryError(refused[0])
        return found[refused.index("")]  # an API key in the environment does not change the consent

    def _by_model(
        self, summary_input: SummaryInput, offer: Offer, question: Question
    ) -> RecordSummary:
        each = self._most(offer, question)
        offer = offer.with_secret()
        subject = self._subject(summary_input)
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
            raise SummaryError("the daily limit is reached: see `hivepipe costs`")
        reply = ask(
            offer,
            question,
            requests=granted,
            timeout_secs=terms.timeout_secs(),
            dollars=granted * terms.budget_usd(offer, prices_in_force(self._home), question),
            should_stop=self._should_stop,
        )
        if reply.answer is None:
            self._settle(id, offer, reply, each)
            raise self._failure(offer, reply, tried + 1)
        result = self._summary(summary_input, offer, reply, each)
        try:
            # Stored before the settlement, so that a kill in between does not lose a paid summary.
            self._keep(result)
        finally:
            self._settle(id, offer, reply, each)
        return result

    def _settle(self, id: int, offer: Offer, reply: Reply, each: Amount) -> None:
        amount = self._amount(offer, reply, each)
        with spending() as ledger:
            ledger.settle(id, answered=reply.answer is not None, amount=amount)

    def _most(self, offer: Offer, question: Question) -> Amount:
        tokens = terms.most_tokens(question)
        return Amount(1, tokens.prompt + tokens.output, self._micro_usd(offer, tokens))

    def _micro_usd(self, offer: Offer, tokens: Tokens) -> int:
        cost = terms.price(offer, prices_in_force(self._home), tokens)
        if cost is None:
            raise SummaryError(f"no price of {offer.model} is known: add it to prices.toml")
        return int(cost * MICRO)

    def _amount(self, offer: Offer, reply: Reply, each: Amount) -> Amount:
        """Return the usage of a call; a request with unknown usage is charged at its maximum."""
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

    def _subject(self, summary_input: SummaryInput) -> str:
        """Return the id of the call of a model.

        Calls about the same session state have the same id. If a person asks, the id is new.
        """
        text = f"{self._home}\0{summary_input.session}\0{summary_input.excerpt.state}"
        if self._is_asked:
            text += f"\0{time.time_ns()}"
        return blake2b(text.encode(), digest_size=16).hexdigest()

    def _tried(self, ledger: Spending, subject: str) -> int:
        """Return the number of failed calls about `subject`.

        Raise SummaryError if no further call is allowed, and TryLaterError while another process
        is asking.
        """
        tries = ledger.tries(subject)
        if tries.answered:
            raise SummaryError("the model was asked before, and its answer was lost")
        if any(_is_at_work(pid, at) for pid, at in tries.open):
            raise TryLaterError("another process is asking now", 60)
        if tries.open:
            ledger.give_up(subject)
            raise SummaryError("the model was asked before, and that process was killed")
        if tries.failed >= MOST_TRIES:
            raise SummaryError(f"{tries.failed} requests to the model failed")
        return tries.failed

    def _failure(self, offer: Offer, reply: Reply, tries: int) -> Exception:
        """Return the exception for a failure: StoppedError, TryLaterError or SummaryError."""
        reason = f"{offer.provider.kind}: {reply.failure}: {reply.reason}"
        if reply.failure == "stopped":
            return StoppedError()
        if not reply.may_succeed_later or self._is_asked or tries >= MOST_TRIES:
            return SummaryError(reason)
        delay = retry.llm_delay_secs(tries, random.random(), reply.retry_after_secs or 0.0)
        if delay > LONGEST_DELAY_SECS:
            return SummaryError(reason)
        return TryLaterError(reason, delay)

    def _summary(
        self, summary_input: SummaryInput, offer: Offer, reply: Reply, each: Amount
    ) -> RecordSummary:
        answer, used = reply.answer or Answer(""), reply.used
        return _result(
            summary_input,
            LLM,
            answer,
            provider=offer.provider.kind,
            model=offer.model,
            requests=used.requests,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost_usd=self._amount(offer, reply, each).dollars,
        )

    def _plain(self, summary_input: SummaryInput, reason: str) -> RecordSummary:
        if reason != OFF:
            logger.warning("session %s: a summary from metadata: %s", summary_input.session, reason)
        if summary_input.meta:
            answer = plain_summary(summary_input.meta)
        else:
            answer = plain_text_summary(summary_input.excerpt.text, summary_input.harness)
        return _result(summary_input, PLAIN, answer, reason=reason)


def of_compaction(summary_input: SummaryInput) -> RecordSummary | None:
    """Return Claude Code's own summary of a compaction, or None if the archive has none."""
    words = summary_input.meta.get("compact_summary")
    if not isinstance(words, str) or not words:
        return None
    digest = blake2b(words.encode(), digest_size=12).hexdigest()
    # A compaction has its own state, so that the session's state is still summarised.
    state = Excerpt(f"{COMPACTION} {digest}", 0)
    named = summary_input._replace(excerpt=state)
    return _result(named, PLAIN, Answer(words), provider=COMPACTION, reason="by Claude Code, free")


def _result(summary_input: SummaryInput, kind: str, answer: Answer, **more: Any) -> RecordSummary:
    clean = {
        name: tuple(map(redact_text, getattr(answer, name)))
        for name in ("key_learnings", "files", "open_ends")
    }
    return RecordSummary(
        state=summary_input.excerpt.state,
        made_at=now()[0],
        kind=kind,
        summary=redact_text(answer.summary),
        harness=summary_input.harness,
        useful=answer.useful,
        **{**clean, **more},
    )


def _caps() -> Amount:
    caps = terms.caps()
    return Amount(caps.calls, caps.tokens, int(caps.dollars * MICRO))


def _is_at_work(pid: int, at: float) -> bool:
    is_over = pid == os.getpid() or time.time() - at > CALL_IS_OVER_SECS
    return not is_over and lives(pid, "")
