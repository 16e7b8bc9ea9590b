"""The end of a conversation, as a language model gets it."""

import json
import time

from hivepipe.summaries.excerpt import LIMIT_BYTES, excerpt_of


def line(who: str, words: str) -> bytes:
    return json.dumps({"type": who, "message": {"role": who, "content": words}}).encode()


CONVERSATION = [line("user", "mend the parser"), line("assistant", "it is mended")]
EXIT_LINES = [
    line("user", "<command-name>/exit</command-name>\n<command-message>exit</command-message>"),
    line("user", "<local-command-stdout>Goodbye!</local-command-stdout>"),
]


def test_resuming_and_leaving_a_session_does_not_change_its_excerpt() -> None:
    before = excerpt_of(CONVERSATION)
    assert excerpt_of(CONVERSATION + EXIT_LINES) == before
    assert before.messages == 2
    more = excerpt_of([*CONVERSATION, *EXIT_LINES, line("user", "and the changelog?")])
    assert more.state != before.state


def test_a_summary_is_no_message_and_a_typed_command_is_in_the_text() -> None:
    before = json.loads(line("user", "Ana wanted the parser mended"))
    excerpt = excerpt_of([json.dumps({**before, "isCompactSummary": True}).encode(), *CONVERSATION])
    assert excerpt.text.startswith("Summary of what came before: Ana wanted")
    assert excerpt.messages == 2
    asked = line("user", "<command-message>review</command-message>\n<command-name>/review<")
    assert "/review" in excerpt_of([*CONVERSATION, asked]).text


def test_a_long_session_that_was_left_again_has_the_same_state() -> None:
    long = [line("assistant", f"{n}: {'mended ' * 100}") for n in range(60)]
    assert excerpt_of(long + EXIT_LINES).state == excerpt_of(long).state
    assert len(excerpt_of(long).text.encode()) <= LIMIT_BYTES


def test_half_an_emoji_in_an_answer_is_replaced() -> None:
    """JavaScript may cut a tool's answer in the middle of an emoji."""
    answer = {"type": "tool_result", "tool_use_id": "t", "content": "cut \ud83d"}
    line = json.dumps({"type": "user", "message": {"role": "user", "content": [answer]}}).encode()
    assert excerpt_of([*CONVERSATION, line]).text.endswith("[answer: cut \ufffd]")


def test_the_time_is_linear_in_the_calls_of_a_line() -> None:
    calls = [{"type": "tool_use", "name": "Read"}] * 100_000
    raw = json.dumps({"type": "assistant", "message": {"content": calls}}).encode()
    begun = time.thread_time()
    excerpt = excerpt_of([raw])
    assert time.thread_time() - begun < 1
    assert LIMIT_BYTES - 100 < len(excerpt.text) <= LIMIT_BYTES
