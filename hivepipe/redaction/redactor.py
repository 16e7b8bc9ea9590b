"""Take secrets out of texts and of transcript lines, and leave everything else byte for byte."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from hivepipe.redaction.escapes import NEEDLESS, OutOfTimeError, Unescaped, plain
from hivepipe.redaction.json_line import Leaf, is_json, leaves
from hivepipe.redaction.rule import Rule
from hivepipe.redaction.rules import RULES
from hivepipe.redaction.scanner import Scanner, Span, merged

# Of processor time, so that a busy machine costs nobody a text.
LEAF_SECS = 1.0
LINE_SECS = 2.0
MAX_LINE_BYTES = 64 << 20
UNREDACTABLE = "unredactable"  # stands for a rule's name where a whole text had to go

_DEEPEST = 4  # JSON in a text in JSON ...
_SHORTEST_BYTES = 8  # with its quotes: `"a@b.de"`

Redacted = tuple[bytes, tuple[str, ...]]


class Edit(NamedTuple):
    """What stands in the place of `start:end`, and which rule put it there."""

    start: int
    end: int
    replacement: bytes
    rule: str


class Redactor:
    """A set of rules and allowed texts, ready to be used."""

    def __init__(self, rules: Sequence[Rule] = RULES, allowed: Sequence[str] = ()) -> None:
        """Compile; RedactionRuleError names the rule that cannot be."""
        self._rules = tuple(rules)
        self._kinds = {rule.name: rule.kind for rule in rules} | {UNREDACTABLE: "whole text"}
        self._scanner = Scanner(self._rules, allowed, disguise=NEEDLESS)

    def kind(self, rule: str) -> str:
        """Return what kind of secret a rule finds, for the audit log."""
        return self._kinds.get(rule, rule)

    def redact_text(self, text: str) -> str:
        """Return the text with a placeholder for every secret; fails closed."""
        data = text.encode("utf-8", "surrogatepass")
        if not self._scanner.suspects(data):
            return text
        edits = self._edits_of_text(data)
        return edited(data, edits).decode("utf-8", "surrogatepass") if edits else text

    def redact_line(self, line: bytes) -> Redacted:
        """Return the line of a transcript without its secrets, and the rules that found them.

        JSON stays JSON; anything else is taken as plain text.
        """
        edits = self.edits(line)
        if not edits:
            return line, ()
        return edited(line, edits), tuple(edit.rule for edit in edits)

    def redact_stream(self, source: BinaryIO) -> Iterator[Redacted]:
        """Redact a file line by line; a line that is too long for the memory is left out."""
        while line := source.readline(MAX_LINE_BYTES):
            if len(line) < MAX_LINE_BYTES or line.endswith(b"\n"):
                yield self.redact_line(line)
            else:
                yield b'"%s"\n' % _left_out(line, source), (UNREDACTABLE,)

    def edits(self, line: bytes) -> list[Edit]:
        """Return what has to change in a line, in order."""
        if not self._scanner.suspects(line):
            return []
        return self._edits_of_json(line) if is_json(line) else self._edits_of_text(line)

    def _edits_of_json(self, line: bytes) -> list[Edit]:
        edits: list[Edit] = []
        spent_secs = 0.0
        for leaf in leaves(line):
            spelled = line[leaf.start : leaf.end]
            if len(spelled) < _SHORTEST_BYTES or not self._scanner.suspects(spelled):
                continue
            begun = time.thread_time()
            edits += self._edits_of_leaf(line, leaf)
            spent_secs += time.thread_time() - begun
            if spent_secs > LINE_SECS:
                whole = _whole(line, 0, len(line.rstrip(b"\r\n")))
                return [whole._replace(replacement=b'"%s"' % whole.replacement)]
        return edits

    def _edits_of_text(self, text: bytes) -> list[Edit]:
        try:
            spans = self._find(text, time.thread_time() + LEAF_SECS)
        except OutOfTimeError:
            return [_whole(text, 0, len(text.rstrip(b"\r\n")))]
        return [self._edit(span.start, span.end, span.rule) for span in spans]

    def _edits_of_leaf(self, line: bytes, leaf: Leaf) -> list[Edit]:
        try:
            spans = self._find_in_leaf(line[leaf.start : leaf.end], len(leaf.strings) == 2)
        except OutOfTimeError:
            *keys, value = leaf.strings
            suspect = [
                (start, end) for start, end in keys if self._scanner.suspects(line[start:end])
            ]
            alone = [Leaf(start - 1, end + 1, ((start, end),)) for start, end in suspect]
            of_keys = [edit for key in alone for edit in self._edits_of_leaf(line, key)]
            return [*of_keys, _whole(line, *value)]
        return [
            self._edit(
                max(start, leaf.start + span.start), min(end, leaf.start + span.end), span.rule
            )
            for start, end in leaf.strings
            for span in spans
            if leaf.start + span.start < end and start < leaf.start + span.end
        ]

    def _find_in_leaf(self, spelled: bytes, is_member: bool) -> list[Span]:
        """Find the secrets of a string or a member; most that are suspect hold none."""
        deadline = time.thread_time() + LEAF_SECS
        if b"\\" not in spelled:
            return self._find(spelled, deadline)
        text = plain(spelled, is_member)
        if text is not None and not self._find(text, deadline):
            return []
        return self._find_spelled(spelled, deadline)

    def _find(self, text: bytes, deadline: float, depth: int = _DEEPEST) -> list[Span]:
        """Find the secrets of a text as it is, and as it would be without needless escapes."""
        spans = self._scanner.find(text, deadline)
        if depth and self._scanner.is_disguised(text):
            spans = merged(spans + self._find_spelled(text, deadline, depth - 1))
        return spans

    def _find_spelled(self, spelled: bytes, deadline: float, depth: int = _DEEPEST) -> list[Span]:
        """Find the secrets of what is spelled here, as ranges of the spelling."""
        read = Unescaped(spelled, deadline)
        spans = self._find(read.text, deadline, depth)
        return [Span(*read.origin(span.start, span.end), span.rule) for span in spans]

    def _edit(self, start: int, end: int, rule: int) -> Edit:
        found = self._rules[rule]
        return Edit(start, end, found.replacement.encode(), found.name)


def edited(text: bytes, edits: Sequence[Edit]) -> bytes:
    """Return the text with all edits made."""
    parts: list[bytes] = []
    done = 0
    for edit in edits:
        parts += (text[done : edit.start], edit.replacement)
        done = edit.end
    return b"".join((*parts, text[done:]))


def _whole(text: bytes, start: int, end: int) -> Edit:
    taken = text[start:end]
    return Edit(start, end, _unredactable(hashlib.sha256(taken), len(taken)), UNREDACTABLE)


def _left_out(beginning: bytes, source: BinaryIO) -> bytes:
    """Read a line to its end and return what stands for it."""
    digest = hashlib.sha256(beginning)
    size = len(beginning)
    part = beginning
    while part and not part.endswith(b"\n"):
        part = source.readline(1 << 20)
        digest.update(part)
        size += len(part)
    return _unredactable(digest, size)


def _unredactable(digest: "hashlib._Hash", size: int) -> bytes:
    """Return enough to find the text again in what was redacted."""
    return b"***UNREDACTABLE sha256=%s bytes=%d***" % (digest.hexdigest().encode(), size)
