"""The end of a conversation as plain text, the input of a language model. No I/O.

Tool results are shortened, and thinking is left out, because messages say more in fewer bytes.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from hivepipe.transcripts.compaction import CAP_SUMMARY, without_frame
from hivepipe.transcripts.lines import Fields, blocks, message_text, part, read_line, text
from hivepipe.transcripts.users_words import is_local_command, is_typed

LIMIT_BYTES = 20_000
CALL_CHARACTERS = 300
RESULT_CHARACTERS = 500
MESSAGE_CHARACTERS = 4_000

_ARGUMENTS = ("file_path", "notebook_path", "command", "pattern", "skill", "description", "url")


class Excerpt(NamedTuple):
    """An excerpt's text, and the number of messages of user and Claude in the conversation."""

    text: str
    messages: int

    @property
    def state(self) -> str:
        """Return a hash of the text; resuming a session without a message does not change it."""
        return blake2b(self.text.encode(), digest_size=12).hexdigest()


def excerpt_of(lines: Iterable[bytes]) -> Excerpt:
    """Return the end of a transcript, in whole paragraphs, at most 20 kB of UTF-8.

    Only a last paragraph of more than 20 kB is cut.
    """
    kept: deque[str] = deque()
    size = messages = 0
    for raw in lines:
        for paragraph in _paragraphs(raw):
            messages += paragraph.startswith(("User: ", "Claude: "))
            kept.append(paragraph)
            size += len(paragraph.encode()) + 2
        while size > LIMIT_BYTES and len(kept) > 1:
            size -= len(kept.popleft().encode()) + 2
    return Excerpt(last_bytes("\n\n".join(kept)), messages)


def last_bytes(words: str) -> str:
    """Return the end of a text, at most LIMIT_BYTES of UTF-8."""
    return words.encode("utf-8", "replace")[-LIMIT_BYTES:].decode("utf-8", "ignore")


def _paragraphs(raw: bytes) -> Iterator[str]:
    line = read_line(raw)
    if line is None:
        return
    kind, message = text(line, "type"), part(line, "message")
    words = _words(line, message)
    is_own = line.get("isMeta") is True and not is_typed(line, words)
    if is_own or kind not in ("user", "assistant"):
        return
    # A session that was only resumed and closed needs no new summary.
    if words and not is_local_command(words):
        yield f"{_speaker(line, kind, words)}: {words}"
    for call in blocks(message, "tool_use"):
        yield f"[Claude calls {text(call, 'name')}: {_arguments(part(call, 'input'))}]"
    for result in blocks(message, "tool_result"):
        answer = message_text(result, RESULT_CHARACTERS).strip()
        if answer:
            yield f"[{'failed' if result.get('is_error') is True else 'answer'}: {answer}]"


def _words(line: Fields, message: Fields) -> str:
    if line.get("isCompactSummary") is True:
        return without_frame(message_text(message, CAP_SUMMARY))[:MESSAGE_CHARACTERS].strip()
    return message_text(message, MESSAGE_CHARACTERS).strip()


def _speaker(line: Fields, kind: str, words: str) -> str:
    if line.get("isCompactSummary") is True:
        return "Summary of what came before"
    if kind == "assistant":
        return "Claude"
    return "User" if is_typed(line, words) else "Claude Code"


def _arguments(given: Fields) -> str:
    found = (text(given, name, CALL_CHARACTERS) for name in _ARGUMENTS)
    return " ".join(filter(None, found))[:CALL_CHARACTERS]
