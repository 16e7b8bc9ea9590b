"""The guard's rules: which calls count as repeated, and how many are warned of or denied."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hivepipe import settings
from hivepipe.guard import messages, rules
from hivepipe.guard.client import CHANGE, DENIED, EDIT, OTHER, POLL, WAITING, WINDOW
from hivepipe.guard.rules import Call, Limits, Verdict, judge, kind_of, matches

DEFAULTS = Limits()


def calls(text: str) -> list[Call]:
    """Parse calls: each letter is a call, a capital names its kind, a digit after it its result."""
    found: list[Call] = []
    for character in text.replace(" ", ""):
        if character.isdigit() or character == DENIED:
            found[-1].result = character
        else:
            kinds = {"C": CHANGE, "D": CHANGE, "E": EDIT, "F": EDIT, "W": WAITING, "P": POLL}
            found.append(Call(character, kinds.get(character, OTHER), ""))
    return found


def verdict_of(text: str, limits: Limits = DEFAULTS) -> tuple[str, int, str] | None:
    verdict = judge(calls(text), limits)
    if verdict is None:
        return None
    return verdict.rule, verdict.count, "denied" if verdict.deny else "warned"


@pytest.mark.parametrize("times", [1, 7, 8, 14, 15, 39, 40, 41, 49])
def test_a_loop_is_warned_of_from_8_and_denied_from_15(times: int) -> None:
    expected = None
    if times >= 8:
        expected = ("loop", min(times, WINDOW), "denied" if times >= 15 else "warned")
    assert verdict_of("a" * times) == expected


@given(st.text("aaabbcCDEFWP1234- ", max_size=80), st.sampled_from("zEWP"), st.integers(3, 5))
def test_the_first_call_of_its_kind_gets_no_verdict(before: str, kind: str, least: int) -> None:
    limits = Limits(loop=f"{least} 9", alternation=f"9 {least}", empty_polls="1")
    assert limits.ignore_a_first
    kinds = {"E": EDIT, "W": WAITING, "P": POLL}
    now = Call("first", kinds.get(kind, OTHER), "")
    assert judge([*calls(f"a{before}"), now], limits) is None


def test_a_low_limit_judges_a_first_call_too() -> None:
    assert not Limits(alternation="2 9").ignore_a_first
    assert not Limits(loop="1 9").ignore_a_first


def test_other_calls_in_between_do_not_end_a_loop_and_only_the_window_counts() -> None:
    mixed = [call for n in range(15) for call in (Call(f"x{n}", OTHER, ""), Call("a", OTHER, "1"))]
    verdict = judge(mixed, DEFAULTS)
    assert verdict is not None
    assert (verdict.rule, verdict.count, verdict.deny) == ("loop", 15, True)
    varied = [Call(f"x{n}", OTHER, "") for n in range(WINDOW - 1)]
    assert judge([*calls("a" * 14), *varied, *calls("a")], DEFAULTS) is None


def test_another_result_is_progress_and_the_same_one_is_not() -> None:
    assert verdict_of("a1" * 20 + "a") == ("loop", 21, "denied")
    assert verdict_of("a1a2" * 10 + "a") is None
    assert verdict_of("a1" * 20 + "a2" + "a") is None
    assert verdict_of("a1" * 10 + "a2" + "a2" * 7 + "a") == ("loop", 8, "warned")


def test_results_are_compared_in_the_order_of_the_calls() -> None:
    assert verdict_of("a1 a a2 a a a a a a a a") == ("loop", 8, "warned")


def test_a_change_by_a_command_restarts_the_counts_of_calls_that_change_nothing() -> None:
    assert verdict_of("a" * 14 + "C1" + "a") is None
    assert verdict_of("C1" * 14 + "C") == ("loop", 15, "denied")
    assert verdict_of("C1D1" * 6 + "C") == ("alternation", 12, "denied")
    assert verdict_of("C1E1" * 18 + "C") is None  # a build after each edit


def test_a_new_command_that_changed_a_file_restarts_also_the_count_of_a_build() -> None:
    rounds = [
        call
        for n in range(20)
        for call in (Call(f"sed {n}", CHANGE, "1"), Call("build", CHANGE, "1"))
    ]
    for length in range(1, len(rounds) + 1):
        assert judge([*rounds[:length], Call("build", OTHER, "")], DEFAULTS) is None


def test_a_changed_file_restarts_the_counts_of_other_tools() -> None:
    assert verdict_of("a" * 14 + "E1" + "a") is None
    rounds = [
        call for n in range(20) for call in (Call(f"edit {n}", EDIT, "1"), Call("test", OTHER, "1"))
    ]
    for length in range(1, len(rounds) + 1):
        assert judge(rounds[:length], DEFAULTS) is None


@pytest.mark.parametrize("times", [1, 5, 6, 11, 12, 13, 19])
def test_an_alternation_is_warned_of_from_6_and_denied_from_12(times: int) -> None:
    expected = None
    if times >= 6:
        expected = ("alternation", times, "denied" if times >= 12 else "warned")
    assert verdict_of(("ab" * times)[:times]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ababababab x ab", ("alternation", 12, "denied")),  # a few calls in between
        ("abx aby abz abu abv abw", None),
        ("aaaaaa bbbbbb", None),
        ("aabb aabb aabb", None),
        ("a1b1a1b2a1b3a1b4a1b5a1b6", None),  # progress of one of the two
        ("E1F1" * 6, ("alternation", 12, "denied")),
        ("E1" * 15, ("loop", 15, "denied")),  # the same edit again and again
    ],
)
def test_two_calls_that_take_turns_are_an_alternation(
    text: str, expected: tuple[str, int, str] | None
) -> None:
    assert verdict_of(text) == expected


def test_polling_is_warned_of_late_and_never_denied() -> None:
    assert verdict_of("W1" * 14) is None
    assert verdict_of("W1" * 15) == ("loop", 15, "warned")
    assert verdict_of("W1" * 40) == ("loop", 40, "warned")
    assert verdict_of("W1a1" * 5) is None
    assert verdict_of("W1a1" * 6) == ("alternation", 12, "warned")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P", None),
        ("P1P1P", None),
        ("P1P1P1P", ("poll", 2, "denied")),
        ("P1P1P1P-P", ("poll", 2, "denied")),
        ("P1P1P2P", None),
        ("P1P1P2P2P2P", ("poll", 2, "denied")),
        ("PPPPPP", None),
        ("P1 a P1 b P1 c P", ("poll", 2, "denied")),
    ],
)
def test_a_poll_is_denied_after_two_empty_ones(
    text: str, expected: tuple[str, int, str] | None
) -> None:
    assert verdict_of(text) == expected


def test_the_numbers_are_settings() -> None:
    limits = Limits(loop="2 3", empty_polls="1")
    assert verdict_of("aa", limits) == ("loop", 2, "warned")
    assert verdict_of("aaa", limits) == ("loop", 3, "denied")
    assert verdict_of("P1P1P", limits) == ("poll", 1, "denied")


@pytest.mark.parametrize(
    "text", ["", "8", "0 3", "-1 3", "x y", "1 2 3", "1.5 2", "\u0968 \u0969x"]
)
def test_unusable_numbers_give_the_defaults(text: str) -> None:
    limits = Limits(loop=text)
    assert (limits.loop_warn, limits.loop_deny) == (8, 15)


def test_a_list_may_be_empty() -> None:
    assert Limits(waiting=";").waiting == ()
    assert Limits(waiting=" a ;; Bash: b *;").waiting == ("a", "Bash: b *")
    assert Limits().waiting == tuple(settings.DEFAULTS["HIVEPIPE_GUARD_WAITING"].split("; "))


@pytest.mark.parametrize(
    ("tool", "command", "kind"),
    [
        ("Bash", "sleep 30", WAITING),
        ("Bash", " sleep 30 && gh run list", WAITING),
        ("Bash", "gh run view 7", WAITING),
        ("Bash", "sleepy", OTHER),
        ("Bash", "ls", OTHER),
        ("TaskOutput", "", WAITING),
        ("Monitor", "", WAITING),
        ("mcp__mail__poll_inbox", "", POLL),
        ("mcp__mail__send", "", OTHER),
    ],
)
def test_the_kind_of_a_call(tool: str, command: str, kind: str) -> None:
    assert kind_of(tool, command, False, Limits(polls="mcp__*__poll*")) == kind


@given(st.text("ab*", max_size=6), st.text("ab", max_size=6))
def test_a_star_stands_for_anything(pattern: str, text: str) -> None:
    def slow(pattern: str, text: str) -> bool:
        if not pattern:
            return not text
        if pattern[0] == "*":
            return any(slow(pattern[1:], text[n:]) for n in range(len(text) + 1))
        return text[:1] == pattern[0] and slow(pattern[1:], text[1:])

    assert matches(pattern, text) == slow(pattern, text)


@given(st.lists(st.tuples(st.sampled_from("abE"), st.sampled_from(["", "1", "2"])), max_size=60))
def test_the_count_of_a_verdict_reaches_the_threshold_of_its_rule(
    entries: list[tuple[str, str]],
) -> None:
    listed = [Call(name, EDIT if name == "E" else OTHER, result) for name, result in entries]
    if not listed:
        return
    verdict: Verdict | None = judge(listed, DEFAULTS)
    if verdict is None:
        return
    warn, deny = {"loop": (8, 15), "alternation": (6, 12)}[verdict.rule]
    assert warn <= verdict.count <= WINDOW
    assert verdict.deny == (verdict.count >= deny)


@pytest.mark.parametrize(
    "rule", [rules.CANCELLED, rules.SHARED_DISK, rules.LOOP, rules.ALTERNATION, rules.POLLING]
)
def test_no_denial_names_a_command_that_lifts_it(rule: str) -> None:
    text = messages.reason(Verdict(rule, 15, True, "it"), "Bash", "task-1")
    assert "`" not in text
    for command in ("guard mode", "task reopen", "hivepipe off", "GUARD="):
        assert command not in text
