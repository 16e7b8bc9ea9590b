"""Take secrets out of texts and of transcript lines, and leave everything else byte for byte."""

import hashlib
import time
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from hivepipe.redaction.disguise import IN_JSON, IN_TEXT, positions, seen_through
from hivepipe.redaction.edit import Edit, edited
from hivepipe.redaction.escapes import OutOfTimeError, plain, unescaped
from hivepipe.redaction.json_line import Leaf, is_json, leaves
from hivepipe.redaction.rule import Rule
from hivepipe.redaction.rules import RULES
from hivepipe.redaction.scanner import Scanner, Span, merged
from hivepipe.redaction.windows import Windows, is_record

# Of processor time, so that a busy machine costs nobody a text.
LEAF_SECS = 1.0
LINE_SECS = 2.0
MAX_LINE_BYTES = 64 << 20
UNREDACTABLE = "unredactable"  # stands for a rule's name where a whole text had to go

_DEEPEST = 4  # JSON in a text in JSON ...
_SHORTEST_BYTES = 8  # with its quotes: `"a@b.de"`

Redacted = tuple[bytes, tuple[str, ...]]


class Redactor:
    """A set of rules and allowed texts, ready to be used."""

    def __init__(self, rules: Sequence[Rule] = RULES, allowed: Sequence[str] = ()) -> None:
        """Compile; RedactionRuleError names the rule that cannot be."""
        self._rules = tuple(rules)
        self._kinds = {rule.name: rule.kind for rule in rules} | {UNREDACTABLE: "whole text"}
        self._scanner = Scanner(self._rules, allowed, disguise=IN_TEXT, suspect=IN_JSON)

    def kind(self, rule: str) -> str:
        """Return what kind of secret a rule finds, for the audit log."""
        return self._kinds.get(rule, rule)

    def redact_text(self, text: str) -> str:
        """Return the text with a placeholder for every secret; fails closed."""
        data = text.encode("utf-8", "surrogatepass")
        suspects = self._scanner.suspects(data)
        edits = self._edits_of_text(data, suspects) if suspects else ()
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
        """Redact a file: records of JSON one by one, any other text as a whole.

        A line that is too long for the memory is left out.
        """
        text = Windows(self.edits)
        while line := source.readline(MAX_LINE_BYTES):
            if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
                yield from text.end()
                yield b'"%s"\n' % _left_out(line, source), (UNREDACTABLE,)
            elif is_record(line, in_text=bool(text)):
                yield from text.end()
                yield self.redact_line(line)
            else:
                yield from text.add(line)
        yield from text.end()

    def edits(self, line: bytes) -> list[Edit]:
        """Return what has to change in a line, in order."""
        suspects = self._scanner.suspects(line)
        if not suspects:
            return []
        find = self._edits_of_json if is_json(line) else self._edits_of_text
        return find(line, suspects)

    def _edits_of_json(self, line: bytes, suspects: Sequence[int]) -> list[Edit]:
        edits: list[Edit] = []
        spent_secs = 0.0
        for leaf in leaves(line):
            size = leaf.end - leaf.start
            if size < _SHORTEST_BYTES:
                continue
            # Most of a line is often one leaf: what was found suspect in the line is so in it.
            known = suspects
            if size < len(line) // 2:
                known = self._scanner.suspects(line[leaf.start : leaf.end], suspects)
            if not known:
                continue
            begun = time.thread_time()
            edits += self._edits_of_leaf(line, leaf, known)
            spent_secs += time.thread_time() - begun
            if spent_secs > LINE_SECS:
                whole = _whole(line, 0, len(line.rstrip(b"\r\n")))
                return [whole._replace(replacement=b'"%s"' % whole.replacement)]
        return edits

    def _edits_of_text(self, text: bytes, suspects: Sequence[int]) -> list[Edit]:
        try:
            spans = self._find(text, time.thread_time() + LEAF_SECS, suspects)
        except OutOfTimeError:
            return [_whole(text, 0, len(text.rstrip(b"\r\n")))]
        return [self._edit(span.start, span.end, span.rule) for span in spans]

    def _edits_of_leaf(self, line: bytes, leaf: Leaf, suspects: Sequence[int]) -> list[Edit]:
        spelled = line[leaf.start : leaf.end]
        try:
            spans = self._find_in_leaf(spelled, len(leaf.strings) == 2, suspects)
        except OutOfTimeError:
            *keys, value = leaf.strings
            of_keys: list[Edit] = []
            for start, end in keys:
                if known := self._scanner.suspects(line[start:end]):
                    alone = Leaf(start - 1, end + 1, ((start, end),))
                    of_keys += self._edits_of_leaf(line, alone, known)
            return [*of_keys, _whole(line, *value)]
        return [
            self._edit(
                max(start, leaf.start + span.start), min(end, leaf.start + span.end), span.rule
            )
            for start, end in leaf.strings
            for span in spans
            if leaf.start + span.start < end and start < leaf.start + span.end
        ]

    def _find_in_leaf(self, spelled: bytes, is_member: bool, suspects: Sequence[int]) -> list[Span]:
        """Find the secrets of a string or a member; most that are suspect hold none."""
        deadline = time.thread_time() + LEAF_SECS
        if b"\\" not in spelled:
            return self._find(spelled, deadline, suspects)
        text = plain(spelled, is_member)
        if text is not None and not self._find(text, deadline, self._of(text, suspects)):
            return []
        read = unescaped(spelled, deadline)
        spans = self._find(read.text, deadline, self._of(read.text, suspects))
        return [Span(*read.origin(span.start, span.end), span.rule) for span in spans]

    def _of(self, text: bytes, suspects: Sequence[int]) -> Sequence[int]:
        """Return the suspects of a text whose spelling has these: only a disguise hides some."""
        if not self._scanner.is_disguise(suspects):
            return suspects
        return sorted({*suspects, *self._scanner.suspects(text)})

    def _find(
        self, text: bytes, deadline: float, suspects: Sequence[int], depth: int = _DEEPEST
    ) -> list[Span]:
        """Find the secrets of a text as it is, and as it reads without its disguise."""
        spans = self._scanner.find(text, suspects, deadline)
        if depth and self._scanner.is_disguise(suspects):
            for start, end in self._scanner.disguised(text):
                spans += self._find_behind(text[start:end], start, suspects, deadline, depth - 1)
        return merged(spans)

    def _find_behind(
        self, text: bytes, offset: int, suspects: Sequence[int], deadline: float, depth: int
    ) -> Iterator[Span]:
        """Find the secrets of a disguised text, as ranges of what it is a part of."""
        for between, readable in seen_through(text).items():
            if readable == text:
                continue
            spans = self._find(readable, deadline, self._of(readable, suspects), depth)
            if not spans:  # as mostly: no way back is needed
                continue
            origin = positions(text, between, deadline).origin
            for span in spans:
                start, end = origin(span.start, span.end)
                yield Span(offset + start, offset + end, span.rule)

    def _edit(self, start: int, end: int, rule: int) -> Edit:
        found = self._rules[rule]
        return Edit(start, end, found.replacement.encode(), found.name)


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
