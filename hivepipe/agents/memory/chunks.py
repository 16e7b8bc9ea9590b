"""Split a memory file into chunks of at most MOST_CHARS characters."""

import re
from collections.abc import Iterator

MOST_CHARS = 1_200

_SECTION = re.compile(r"^(?=#{1,6} )", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n\s*\n")


def chunks(text: str) -> list[str]:
    """Return the sections of a text.

    A long section is split at paragraphs, else at spaces, else after MOST_CHARS characters.
    """
    found: list[str] = []
    for section in _SECTION.split(text):
        pending = ""
        for piece in _pieces(section):
            if pending and len(pending) + len(piece) + 2 > MOST_CHARS:
                found.append(pending)
                pending = ""
            pending = f"{pending}\n\n{piece}" if pending else piece
        if pending:
            found.append(pending)
    return found


def _pieces(section: str) -> Iterator[str]:
    for paragraph in _PARAGRAPH.split(section):
        text = paragraph.strip()
        while len(text) > MOST_CHARS:
            end = text.rfind(" ", MOST_CHARS // 2, MOST_CHARS) + 1 or MOST_CHARS
            yield text[:end].strip()
            text = text[end:].strip()
        if text:
            yield text
