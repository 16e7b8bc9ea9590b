"""The rules compute a verdict from the last calls of a conversation. All functions are pure.

A call is a repetition if it has the tool and arguments of an earlier call, and nothing has changed
since then:

    its result differs from the previous one of that call   its own count is reset
    an edit tool changed a file                             all counts are reset, except of edits
    a new command changed a file, as the result shows       all counts are reset, except of edits
    a repeated command changed a file                       all counts are reset, except of edits
                                                            and of commands that change files
    a new prompt, or another task                           all counts are reset

Hooks import this module before a tool call.
"""

from hivepipe.guard.client import (
    CHANGE,
    DENIED,
    EDIT,
    OTHER,
    POLL,
    WAITING,
    WAITING_SUBJECT,
    WINDOW,
)
from hivepipe.settings import DEFAULTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAST_SHARE = 0.8  # share of alternating calls, and of switches between them, in an alternation
_LOOKED_AT = 15  # calls that are searched for the partner of an alternation

# The rules' names. The first two do not count calls.
CANCELLED, SHARED_DISK = "cancelled", "shared-disk"
POLLING, LOOP, ALTERNATION = "poll", "loop", "alternation"


class Call:
    """One recorded call; `result` is "" until it is known."""

    __slots__ = ("kind", "pattern", "result")

    def __init__(self, pattern: str, kind: str, result: str) -> None:
        """`pattern` and `result` are hashes, compared for equality only."""
        self.pattern = pattern
        self.kind = kind
        self.result = result


class Limits:
    """The limits of the rules, from the settings or the defaults."""

    def __init__(
        self,
        loop: str | None = None,
        alternation: str | None = None,
        empty_polls: str | None = None,
        polls: str | None = None,
        waiting: str | None = None,
    ) -> None:
        """Parse the values of settings; None means the default.

        `loop` and `alternation` have two counts each: the first warns, the second denies.
        `empty_polls` is one count. The others are patterns, separated by ";".
        """
        self.loop_warn, self.loop_deny = _counts(loop, "HIVEPIPE_GUARD_LOOP")
        self.alternation_warn, self.alternation_deny = _counts(
            alternation, "HIVEPIPE_GUARD_ALTERNATION"
        )
        (self.empty_polls,) = _counts(empty_polls, "HIVEPIPE_GUARD_EMPTY_POLLS")
        counts = self.loop_warn, self.loop_deny, self.alternation_warn, self.alternation_deny
        # The first call of a pattern counts 1, or 2 in an alternation: too few for limits above 2.
        self.ignore_a_first = min(counts) > 2
        self.polls = _patterns(polls or "")
        self.waiting = _patterns(DEFAULTS["HIVEPIPE_GUARD_WAITING"] if waiting is None else waiting)


class Verdict:
    """The result of a rule for a call.

    Of several warnings about one `subject`, only some are shown.
    """

    __slots__ = ("count", "deny", "rule", "subject")

    def __init__(self, rule: str, count: int, deny: bool, subject: str) -> None:
        """A verdict that does not deny is a warning."""
        self.rule = rule
        self.count = count
        self.deny = deny
        self.subject = subject


def kind_of(tool: str, command: str, is_edit: bool, limits: Limits) -> str:
    """Return the kind of a call: edit, poll, waiting or other."""
    if is_edit:
        return EDIT
    if any(matches(name, tool) for name in limits.polls):
        return POLL
    for name in limits.waiting:
        wanted, colon, pattern = name.partition(":")
        if matches(wanted, tool) and (not colon or matches(pattern.strip(), command.strip())):
            return WAITING
    return OTHER


def matches(pattern: str, text: str) -> bool:
    """Tell whether a text matches a pattern in which `*` means any characters."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == first
    last = rest.pop()
    if not text.startswith(first) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in rest:
        at = text.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return at <= end and text.endswith(last)


def judge(calls: "Sequence[Call]", limits: Limits) -> Verdict | None:
    """Return the verdict on the last of these calls (oldest first), or None if it is fine."""
    calls = calls[-WINDOW:]
    repeated = _unchanged(calls)
    found = [_poll(calls, limits), _loop(calls, repeated, limits)]
    found.append(_alternation(calls, repeated, limits))
    verdicts = [verdict for verdict in found if verdict]
    return next((verdict for verdict in verdicts if verdict.deny), next(iter(verdicts), None))


def _unchanged(calls: "Sequence[Call]") -> list[str]:
    """Return the pattern of each call, or "" if something has changed since that call."""
    last_result: dict[str, str] = {}
    progress: dict[str, int] = {}
    edited = changed = -1
    for number, call in enumerate(calls):
        if call.result == DENIED:
            continue
        if call.kind == EDIT or (call.kind == CHANGE and call.pattern not in last_result):
            edited = changed = number
        elif call.kind == CHANGE:
            changed = number
        if call.result:
            if last_result.get(call.pattern, call.result) != call.result:
                progress[call.pattern] = number
            last_result[call.pattern] = call.result
    reset_at = {EDIT: -1, CHANGE: edited}
    return [
        call.pattern
        if number > progress.get(call.pattern, -1) and number >= reset_at.get(call.kind, changed)
        else ""
        for number, call in enumerate(calls)
    ]


def _poll(calls: "Sequence[Call]", limits: Limits) -> Verdict | None:
    """Return the denial of a poll if its last results were equal too often, else None."""
    now = calls[-1]
    if now.kind != POLL:
        return None
    results = [call.result for call in calls if call.pattern == now.pattern]
    results = [result for result in results if result not in ("", DENIED)]
    empty = 0
    while empty + 1 < len(results) and results[-1] == results[-2 - empty]:
        empty += 1
    if empty < limits.empty_polls:
        return None
    return Verdict(POLLING, empty, True, f"{POLLING} {now.pattern}")


def _loop(calls: "Sequence[Call]", repeated: list[str], limits: Limits) -> Verdict | None:
    now = calls[-1]
    count = repeated.count(now.pattern)
    waits = now.kind == WAITING
    return _verdict(LOOP, count, limits.loop_warn, limits.loop_deny, waits, now.pattern)


def _alternation(calls: "Sequence[Call]", repeated: list[str], limits: Limits) -> Verdict | None:
    mine = calls[-1].pattern
    others = [pattern for pattern in repeated[: -_LOOKED_AT - 1 : -1] if pattern not in ("", mine)]
    if not others:
        return None
    other = max(others, key=others.count)
    count = _taking_turns(repeated, mine, other)
    waits = any(call.kind == WAITING and call.pattern in (mine, other) for call in calls)
    warn, deny = limits.alternation_warn, limits.alternation_deny
    return _verdict(ALTERNATION, count, warn, deny, waits, min(mine, other))


def _taking_turns(repeated: list[str], mine: str, other: str) -> int:
    """Return the number of calls in the longest recent alternation of two patterns, or 0."""
    longest = of_two = switches = 0
    before = ""
    for seen, pattern in enumerate(reversed(repeated), 1):
        if pattern not in (mine, other):
            continue
        of_two += 1
        switches += before not in ("", pattern)
        before = pattern
        if of_two > _LEAST_SHARE * seen and switches > _LEAST_SHARE * (of_two - 1):
            longest = of_two
    return longest


def _verdict(
    rule: str, count: int, warn: int, deny: int, waits: bool, subject: str
) -> Verdict | None:
    """Return the verdict on a count, or None. Waiting tools only get a warning, from `deny` on."""
    if waits:
        return Verdict(rule, count, False, WAITING_SUBJECT) if count >= deny else None
    if count < min(warn, deny):
        return None
    return Verdict(rule, count, count >= deny, f"{rule} {subject}")


def _counts(text: str | None, name: str) -> tuple[int, ...]:
    """Return the positive counts in a setting, or the default of `name` if the setting is invalid.

    A valid setting has as many counts as the default.
    """
    default = tuple(map(int, DEFAULTS[name].split()))
    words = (text or "").split()
    usable = len(words) == len(default) and all(word.isdecimal() for word in words)
    counts = tuple(int(word) for word in words) if usable else default
    return counts if all(counts) else default


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";") if part.strip())
