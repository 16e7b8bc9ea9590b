"""Placeholders with the kind of a secret and a tag: `***REDACTED:password:k3f9qx***`.

With the same key, equal values have equal tags. A tag is 30 bits of an HMAC. Without the key, a tag
reveals nothing about the value.
"""

import hmac
import re
from base64 import b32encode
from collections.abc import Callable
from functools import cache

from hivepipe.redact.disguise import decoded_texts

KEY_BYTES = 32
_TAG_LETTERS = 6
_DEEPEST = 4  # levels of escapes that are decoded
_SHORT = {"e-mail address": "email", "text of a rule of your own": "own-rule"}
_TAGGED = re.compile(rb"\*\*\*(REDACTED:[a-z0-9-]+:[a-z2-7]{%d})\*\*\*" % _TAG_LETTERS)
_PLAIN = re.compile(rb"\*\*\*(?:REDACTED|EMAIL|AWS_KEY|SSH_KEY|R+)\*\*\*")

_LONGEST = 64  # bytes of a placeholder


class Tags:
    """Makes placeholders with the tags of one key."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        """Set the function `key`, which is called when the first secret is found."""
        self.key = cache(key)

    def placeholder(self, kind: str, spelled: bytes) -> bytes:
        """Return the placeholder of a secret.

        The placeholder is the same however the value is escaped.
        """
        return b"***REDACTED:%s:%s***" % (_word(kind).encode(), self._tag(undisguised(spelled)))

    def _tag(self, value: bytes) -> bytes:
        digest = hmac.digest(self.key(), value, "sha256")
        return b32encode(digest)[:_TAG_LETTERS].lower()


def undisguised(spelled: bytes) -> bytes:
    """Return a value without colours and escapes, so that it is the same in every context."""
    for _ in range(_DEEPEST):
        read = decoded_texts(spelled)[b""]
        if read == spelled:
            break
        spelled = read
    return spelled


def without_tags(text: bytes) -> bytes:
    """Return a text of the same length, with tagged placeholders changed to `***RRR***`.

    Rules recognise placeholders as capitals between asterisks.
    """
    if b"***REDACTED:" not in text:
        return text
    return _TAGGED.sub(lambda found: b"***%s***" % (b"R" * len(found[1])), text)


def is_in_placeholder(text: bytes, start: int, end: int) -> bool:
    """Tell whether a range is inside a placeholder without a tag (from `without_tags` or 1.0.0)."""
    nearest = text.rfind(b"***", max(0, start - _LONGEST), start + 3)
    while nearest >= 0:
        found = _PLAIN.match(text, nearest)
        if found and end <= found.end():
            return True
        nearest = text.rfind(b"***", max(0, start - _LONGEST), nearest)
    return False


def _word(kind: str) -> str:
    return re.sub("[^a-z0-9]+", "-", _SHORT.get(kind, kind).lower()).strip("-")
