"""What a call to a model is charged if its process dies."""

import sys

import pytest

from hivepipe.summaries import call
from hivepipe.summaries.providers import PROVIDERS, Offer
from hivepipe.summaries.question import Question


@pytest.mark.parametrize("granted", [1, 2])
def test_a_process_that_dies_is_charged_what_it_was_granted(
    monkeypatch: pytest.MonkeyPatch, granted: int
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    offer = Offer(PROVIDERS[0], "key", "environment", "m", "http://127.0.0.1:1/", "secret-key")
    reply = call.ask(offer, Question("i", "t"), requests=granted, timeout_secs=5, dollars=1.0)
    assert (reply.failure, reply.used) == ("broken", call.Used(granted, None, None, granted))
