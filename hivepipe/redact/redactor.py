"""Replace the secrets in texts and transcript lines. Every other byte stays unchanged."""

import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from itertools import chain, islice
from typing import BinaryIO

from hivepipe.redact import built_in, built_in_rules
from hivepipe.redact.disguise import IN_JSON, IN_TEXT, decoded_texts, positions
from hivepipe.redact.edit import Edit, edited
from hivepipe.redact.escapes import OutOfTimeError, Reading
from hivepipe.redact.found_values import FoundValues, specific
from hivepipe.redact.json_line import Leaf, leaves, plainly_quoted
from hivepipe.redact.rule import AWS_KEY, EMAIL, REDACTED, SSH_KEY, Rule
from hivepipe.redact.scanner import Scanner, Span, merged
from hivepipe.redact.tags import Tags, is_in_placeholder, undisguised, without_tags
from hivepipe.redact.windows import Windows, is_record

# Processor time, so that a busy machine does not cause a timeout.
LEAF_SECS = 1.0
LINE_SECS = 2.0
MAX_LINE_BYTES = 64 << 20
UNREDACTABLE = "unredactable"  # rule name for a whole text that was replaced
FOUND_BEFORE = "found before"  # rule name for a value that is known from another place

# An e-mail address that is redacted in one place is not a secret everywhere
_NOT_LEARNED = (UNREDACTABLE, FOUND_BEFORE, "email")
_TAGGED = (REDACTED, EMAIL, SSH_KEY, AWS_KEY)  # replacements of the built-in rules
_DEEPEST = 4  # levels of escapes that are decoded
_SHORTEST_BYTES = 8  # the shortest string that may hold a secret, with its quotes: `"a@b.de"`
_LEAVES_IN_MEMORY = 1000
# An escape that may hide a word from the sieves: it stands for an ASCII character, or is followed
# by a word character
_HIDING = re.compile(rb"\\u(?:00(?:[2-7]|0[9A-Da-d])|[0-9A-Fa-f]{4}[0-9A-Za-z_])")
# Fields of a transcript line from which sessions, projects, costs and days are read, each in its
# exact form
_OF_CLAUDE = re.compile(
    rb'"(?:timestamp"\s*:\s*"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,18}Z'
    rb'|(?:sessionId|uuid|parentUuid|logicalParentUuid|leafUuid)"\s*:\s*'
    rb'"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}'
    rb'|(?:id|requestId)"\s*:\s*"(?:msg|req)_[0-9A-Za-z]{8,40}'
    rb'|model"\s*:\s*"claude-[a-z0-9.-]{1,60}(?:\[1m\])?)"'
).fullmatch
_FOLDER = re.compile(rb'"cwd"\s*:\s*"/[^"\\\x00-\x1f]{0,4095}"').fullmatch
_STRING = re.compile(rb'"[^"]*+"')
_VALUES = re.compile(rb"[\"'`]\s*,\s*[\"'`]|\s+").split  # a secret may be a list of values
_FOLDER_DEPTH = 2  # `payload` of a Codex line contains the folder; inputs of tools are deeper

Redacted = tuple[bytes, tuple[str, ...]]


class Redactor:
    """A compiled set of rules and allowed texts. Without a key, its placeholders have no tags."""

    def __init__(self, rules: Sequence[Rule] | None = None, allowed: Sequence[str] = ()) -> None:
        """Compile the rules, by default the built-in ones."""
        self.is_built_in = rules is None and not allowed
        self._rules = built_in_rules.rules() if rules is None else tuple(rules)
        self._kinds = {rule.name: rule.kind for rule in self._rules}
        self._kinds |= {UNREDACTABLE: "whole text", FOUND_BEFORE: "known secret"}
        self._scanner = Scanner(self._rules, allowed, disguise=IN_TEXT, suspect=IN_JSON)
        self.checksum = 0
        self._tags: Tags | None = None
        self._found_values: FoundValues | None = None

    def of_home(self, key: Callable[[], bytes], checksum: int = 0) -> "Redactor":
        """Return a copy that puts this key's tags into placeholders.

        `checksum` identifies the rules. It is 0 if the rules are unknown.
        """
        keyed = copy(self)
        keyed._tags, keyed.checksum = Tags(key), checksum
        return keyed

    def of_session(self, known: Iterable[str] = ()) -> "Redactor":
        """Return a copy that learns secrets and recognises them in every context.

        A copy without a key learns nothing. `known` has lines from the property `known` of an
        earlier copy.
        """
        of_session = copy(self)
        of_session._found_values = FoundValues(self._tags.key, known) if self._tags else None
        return of_session

    def without_rules(self) -> "Redactor":
        """Return a copy without rules, which finds only the values learned so far."""
        alone = copy(self)
        alone._rules = ()
        alone._scanner = Scanner((), disguise=IN_TEXT, suspect=IN_JSON)
        return alone

    @property
    def known(self) -> list[str]:
        """Return one line for each learned value, by which a later copy recognises the value."""
        return [each.text() for each in self._found_values.all] if self._found_values else []

    def kind(self, rule: str) -> str:
        """Return the kind of secret that a rule finds; for an unknown rule, its name."""
        return self._kinds.get(rule, rule)

    def redact_text(self, text: str) -> str:
        """Return the text with its secrets replaced. After a timeout the whole text is replaced."""
        data = text.encode("utf-8", "surrogatepass")
        suspects = self._scanner.suspects(data)
        edits = (
            self._edits_of_text(without_tags(data), suspects)
            if self._may_hold(data, suspects)
            else ()
        )
        return edited(data, edits).decode("utf-8", "surrogatepass") if edits else text

    def redact_line(self, line: bytes) -> Redacted:
        """Return a transcript line without its secrets, and the rules that found them.

        JSON stays valid JSON. Any other line is treated as plain text.
        """
        edits = self.edits(line)
        if not edits:
            return line, ()
        return edited(line, edits), tuple(edit.rule for edit in edits)

    def redact_stream(self, source: BinaryIO) -> Iterator[Redacted]:
        """Yield each line without its secrets, with the rules that found them.

        JSON lines are redacted one by one, other text in windows. A placeholder replaces an
        overlong line.
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
        """Return the edits of a line in order; a session's redactor also learns its secrets."""
        suspects = self._scanner.suspects(line)
        if not self._may_hold(line, suspects):
            return []
        read = without_tags(line)
        quoted = plainly_quoted(read)

        def found() -> list[Edit]:
            if quoted is None:
                return self._edits_of_text(read, suspects)
            return self._edits_of_json(read, quoted, suspects)

        edits = found()
        return found() if self._has_learned(read, edits) else edits

    def _may_hold(self, text: bytes, suspects: Sequence[int]) -> bool:
        return bool(suspects) or (
            self._found_values is not None and self._found_values.may_be_in(text)
        )

    def _has_learned(self, text: bytes, edits: Sequence[Edit]) -> bool:
        """Learn the values that rules found; return whether at least one of them is new."""
        if self._found_values is None:
            return False
        found = [
            self._found_values.learn(value, self._kinds[edit.rule])
            for edit in edits
            if edit.rule not in _NOT_LEARNED
            for value in specific(_VALUES(undisguised(text[edit.start : edit.end])))
        ]
        return any(found)

    def _edits_of_json(self, line: bytes, quoted: bytes, suspects: Sequence[int]) -> list[Edit]:
        edits: list[Edit] = []
        spent_secs = 0.0
        for leaf, known in self._suspect_leaves(line, quoted, suspects):
            begun = time.thread_time()
            if not self._is_left_alone(line, quoted, leaf):
                edits += self._edits_of_leaf(line, leaf, known)
            spent_secs += time.thread_time() - begun
            if spent_secs > LINE_SECS:
                whole = _whole(line, 0, len(line.rstrip(b"\r\n")))
                return [whole._replace(replacement=b'"%s"' % whole.replacement)]
        return edits

    def _is_left_alone(self, line: bytes, quoted: bytes, leaf: Leaf) -> bool:
        """Tell whether a leaf stays unchanged: an id, time or path without a secret.

        The user's rules, such as [0-9]{4}, are not applied to such a leaf. Built-in rules are
        applied, and secrets found earlier are looked for. Return False if that takes too long, or
        if there are no rules of the user.
        """
        text = line[leaf.start : leaf.end]
        if self.is_built_in or not (_OF_CLAUDE(text) or _is_folder(text, quoted, leaf.start)):
            return False
        try:
            return not (self._holds_known(text) or built_in().edits(text))
        except OutOfTimeError:
            return False

    def _holds_known(self, text: bytes) -> bool:
        deadline = time.thread_time() + LEAF_SECS
        return self._found_values is not None and any(self._found_values.find(text, deadline))

    def _suspect_leaves(
        self, line: bytes, quoted: bytes, suspects: Sequence[int]
    ) -> Iterator[tuple[Leaf, Sequence[int]]]:
        """Yield each leaf that may hold a secret, with the numbers of rules that may match."""
        others: Iterator[Leaf] = (
            leaf for leaf in leaves(line, quoted) if leaf.end - leaf.start >= _SHORTEST_BYTES
        )
        found = list(islice(others, _LEAVES_IN_MEMORY))
        # One leaf is often most of a line. The other leaves are checked together: few have a
        # secret.
        most = next((leaf for leaf in found if leaf.end - leaf.start >= len(line) // 2), None)
        if most:
            rest = line[: most.start] + line[most.end :]
            if not self._may_hold(rest, self._scanner.suspects(rest, suspects)):
                found, others = [most], iter(())
        for leaf in chain(found, others):
            text = line[leaf.named_from : leaf.end]
            known = suspects if leaf is most else self._scanner.suspects(text, suspects)
            if self._may_hold(text, known):
                yield leaf, known

    def _edits_of_text(self, text: bytes, suspects: Sequence[int]) -> list[Edit]:
        try:
            spans = self._find(text, time.thread_time() + LEAF_SECS, suspects)
        except OutOfTimeError:
            return [_whole(text, 0, len(text.rstrip(b"\r\n")))]
        return [self._edit(text, *span) for span in spans]

    def _edits_of_leaf(self, line: bytes, leaf: Leaf, suspects: Sequence[int]) -> list[Edit]:
        try:
            spans = self._find_in_leaf(line, leaf, suspects)
            if before := leaf.start - leaf.named_from:
                named = self._find_in_leaf(line, leaf._replace(start=leaf.named_from), suspects)
                of_value = [
                    Span(start - before, end - before, rule)
                    for start, end, rule in named
                    if leaf.named_from + start >= leaf.strings[-1][0]
                ]
                spans = merged(spans + of_value)
        except OutOfTimeError:
            *keys, value = leaf.strings
            of_keys: list[Edit] = []
            for start, end in keys:
                known = self._scanner.suspects(line[start:end])
                if self._may_hold(line[start:end], known):
                    alone = Leaf(start - 1, end + 1, ((start, end),), start - 1)
                    of_keys += self._edits_of_leaf(line, alone, known)
            return [*of_keys, _whole(line, *value)]
        return [
            self._edit(
                line,
                max(start, leaf.start + span.start),
                min(end, leaf.start + span.end),
                span.rule,
            )
            for start, end in leaf.strings
            for span in spans
            if leaf.start + span.start < end and start < leaf.start + span.end
        ]

    def _find_in_leaf(self, line: bytes, leaf: Leaf, suspects: Sequence[int]) -> list[Span]:
        deadline = time.thread_time() + LEAF_SECS
        spelled = line[leaf.start : leaf.end]
        if b"\\" not in spelled:
            return self._find(spelled, deadline, suspects)
        strings = [(start - leaf.start, end - leaf.start) for start, end in leaf.strings]
        read = Reading(spelled, strings, deadline)
        if self._scanner.is_disguise(suspects) and _HIDING.search(spelled):
            suspects = sorted({*suspects, *self._scanner.suspects(read.text)})
        spans = self._find(read.text, deadline, suspects)
        return [Span(*read.origin(span.start, span.end), span.rule) for span in spans]

    def _find(
        self, text: bytes, deadline: float, suspects: Sequence[int], depth: int = _DEEPEST
    ) -> list[Span]:
        """Return the secrets in a text, and in the decoded texts of its disguised parts."""
        spans = self._scanner.find(text, suspects, deadline)
        if self._found_values is not None:
            first = len(self._rules) + 1  # after the numbers of the rules and of the disguise
            spans += [
                Span(start, end, first + number)
                for start, end, number in self._found_values.find(text, deadline)
            ]
            if depth and b"\\" in text and self._found_values.may_be_in(text, escaped=True):
                spans += self._find_behind(text, 0, deadline, depth - 1)
        if depth and self._scanner.is_disguise(suspects):
            for start, end in self._scanner.disguised(text):
                spans += self._find_behind(text[start:end], start, deadline, depth - 1)
        return [span for span in merged(spans) if not is_in_placeholder(text, span.start, span.end)]

    def _find_behind(self, text: bytes, offset: int, deadline: float, depth: int) -> Iterator[Span]:
        """Find the secrets in a disguised part of a text; the part starts at `offset`."""
        for between, readable in decoded_texts(text, deadline).items():
            if readable == text:
                continue
            suspects = self._scanner.suspects(readable, may_be_disguised=True)
            spans = self._find(readable, deadline, suspects, depth)
            if not spans:  # the usual case: no mapping is needed
                continue
            origin = positions(text, between, deadline).origin
            for span in spans:
                start, end = origin(span.start, span.end)
                yield Span(offset + start, offset + end, span.rule)

    def _edit(self, text: bytes, start: int, end: int, rule: int) -> Edit:
        if rule > len(self._rules):
            return self._edit_of_known(text, start, end, rule - len(self._rules) - 1)
        found = self._rules[rule]
        if self._tags and found.replacement in _TAGGED:
            placeholder = self._tags.placeholder(found.kind, text[start:end])
        else:
            placeholder = found.replacement.encode()
        return Edit(start, end, placeholder, found.name)

    def _edit_of_known(self, text: bytes, start: int, end: int, number: int) -> Edit:
        assert self._found_values is not None
        assert self._tags is not None
        kind = self._found_values.all[number].kind
        return Edit(start, end, self._tags.placeholder(kind, text[start:end]), FOUND_BEFORE)


def _is_folder(leaf: bytes, quoted: bytes, start: int) -> bool:
    """Tell whether the leaf at this offset of a line is the folder of the line's session."""
    if not _FOLDER(leaf):
        return False
    outside = _STRING.sub(b"", quoted[:start])
    return outside.count(b"{") - outside.count(b"}") <= _FOLDER_DEPTH


def _whole(text: bytes, start: int, end: int) -> Edit:
    taken = text[start:end]
    return Edit(start, end, _unredactable(hashlib.sha256(taken), len(taken)), UNREDACTABLE)


def _left_out(beginning: bytes, source: BinaryIO) -> bytes:
    """Read an overlong line to its end; return its placeholder."""
    digest = hashlib.sha256(beginning)
    size = len(beginning)
    part = beginning
    while part and not part.endswith(b"\n"):
        part = source.readline(1 << 20)
        digest.update(part)
        size += len(part)
    return _unredactable(digest, size)


def _unredactable(digest: "hashlib._Hash", size: int) -> bytes:
    """Return a placeholder with the hash and size of the text, so that it can be identified."""
    return b"***UNREDACTABLE sha256=%s bytes=%d***" % (digest.hexdigest().encode(), size)
