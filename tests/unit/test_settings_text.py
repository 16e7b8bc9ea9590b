"""Editing a settings file changes nothing but hivepipe's entries."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivepipe.errors import SettingsError
from hivepipe.install.hook_entries import EVENTS, Form, entry
from hivepipe.install.settings_text import entries, has_entries, with_entries, without_entries

LAUNCHER = "/home/añ a's/.local/state/hivepipe/hooks/0123456789abcdef/hook"


FORMS = [form for form in Form if form is not Form.PLUGIN]  # the plugin's are in no settings file


def our_entries(form: Form = Form.EXEC) -> dict[str, dict[str, Any]]:
    return {event.name: entry(event, form, LAUNCHER) for event in EVENTS}


FILES = {
    "nothing": "",
    "an empty object": "{}",
    "with a last line break": "{}\n",
    "two spaces": '{\n  "model": "opus"\n}\n',
    "four spaces": '{\n    "model": "opus",\n    "env": {\n        "A": "1"\n    }\n}',
    "tabs": '{\n\t"model": "opus"\n}\n',
    "windows": '{\r\n  "model": "opus"\r\n}\r\n',
    "one line": '{"model":"opus","env":{"A":"1"}}',
    "one line with spaces": '{ "model": "opus" }\n',
    "odd but valid": ' \n{ "model" :\t"opus"\n ,"env":{ }\n}  \n\n',
    "escapes": '{\n  "a": "\\u00e9 \\/ \\ud83d é",\n  "n": 1.0e2,\n  "big": 12345678901234567\n}\n',
    "a number without end": '{"big": ' + "1" * 5000 + "}\n",
    "a byte order mark": '\ufeff{\n  "model": "opus"\n}\n',
    "hooks of others": """{
  "hooks": {
    "PostToolUse": [
      { "matcher": "Edit|Write", "hooks": [ { "type": "command", "command": "prettier" } ] }
    ],
    "TeammateIdle": [{"hooks": [{"type": "command", "command": "bell"}]}]
  },
  "permissions": {"allow": ["Bash(ls:*)"]}
}
""",
    "the same key twice": '{\n  "hooks": {"Stop": []},\n  "hooks": {"Stop": [{"hooks": []}]}\n}\n',
}
# An empty container is removed with our entries, because it cannot be told from one of ours.
EMPTY_HOOKS = ['{\n  "hooks": {}\n}\n', '{\n  "hooks": {\n    "Stop": []\n  }\n}\n']


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_removing_the_added_entries_restores_the_bytes(text: str) -> None:
    for form in FORMS:
        ours = with_entries(text, our_entries(form))
        assert ours != text, form
        assert has_entries(ours, our_entries(form)), form
        assert with_entries(ours, our_entries(form)) == ours, "adding twice equals adding once"
        assert without_entries(ours) == (text if text.strip() else "{}\n"), form
    assert with_entries(ours, our_entries()) == with_entries(text, our_entries()), "replaced"


@pytest.mark.parametrize("text", EMPTY_HOOKS)
def test_an_empty_list_of_hooks_is_removed_with_our_entries(text: str) -> None:
    ours = with_entries(text, our_entries())
    assert has_entries(ours, our_entries())
    assert json.loads(without_entries(ours)) == {}


def test_an_edit_made_since_is_kept_with_its_layout() -> None:
    ours = with_entries(FILES["hooks of others"], our_entries())
    edited = ours.replace('"Bash(ls:*)"', '"Bash(ls:*)",\n      "Bash(cat:*)"')
    kept = FILES["hooks of others"].replace('"Bash(ls:*)"', '"Bash(ls:*)",\n      "Bash(cat:*)"')
    assert without_entries(edited) == kept
    theirs, our = json.loads(ours)["hooks"]["PostToolUse"]
    assert (theirs["matcher"], our["matcher"]) == ("Edit|Write", "*"), "ours comes last"


def test_a_file_that_claude_code_rewrote_loses_exactly_our_entries() -> None:
    ours = json.loads(with_entries(FILES["hooks of others"], our_entries()))
    rewritten = json.dumps(ours, indent=2)
    assert json.loads(without_entries(rewritten)) == json.loads(FILES["hooks of others"])


def test_a_foreign_hook_in_our_group_is_kept() -> None:
    ours = json.loads(with_entries("", our_entries()))
    theirs = {"type": "command", "command": "mine"}
    ours["hooks"]["PostToolUse"][0]["hooks"].append(theirs)
    left = json.loads(without_entries(json.dumps(ours)))
    assert left == {"hooks": {"PostToolUse": [{"matcher": "*", "hooks": [theirs]}]}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1,}', "not valid JSON: line 1, column"),
        ("{\n// a comment\n}", "not valid JSON: line 2"),
        ('{"a": NaN}', "not valid JSON: NaN"),
        ('{"a": "\n"}', "not valid JSON"),
        ("[" * 100_000, "nested too deep"),
        ("[]", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ('{"hooks": []}', '"hooks" that are not an object'),
        ('{"hooks": null}', '"hooks" that are not an object'),
        ('{"hooks": {"Stop": {}}}', 'hooks of "Stop" that are not a list'),
    ],
)
def test_settings_that_cannot_take_hooks_are_refused_with_the_reason(
    text: str, reason: str
) -> None:
    with pytest.raises(SettingsError, match=reason.replace('"', '"')):
        with_entries(text, our_entries())


@pytest.mark.parametrize("odd", [None, 7, "x", [], {"hooks": None}, {"hooks": [None, "x", 7]}])
def test_odd_groups_of_others_are_left_alone(odd: object) -> None:
    text = json.dumps({"hooks": {"Stop": [odd]}})
    assert without_entries(with_entries(text, our_entries())) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)
GROUPS = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(st.fixed_dictionaries({"command": st.text(max_size=9)}), min_size=1)},
        optional={"matcher": st.text(max_size=5)},
    ),
    min_size=1,
    max_size=2,
)
HOOKS_OF_OTHERS = st.dictionaries(
    st.sampled_from(["PreToolUse", "Stop", "Notification"]), GROUPS, min_size=1
)
SETTINGS = st.builds(
    lambda others, hooks, last: {**others, **({"hooks": hooks} if hooks else {}), **last},
    st.dictionaries(st.text(max_size=5).filter(lambda key: key != "hooks"), VALUES, max_size=3),
    st.none() | HOOKS_OF_OTHERS,
    st.dictionaries(st.text(max_size=5).filter(lambda key: key != "hooks"), VALUES, max_size=2),
)
LAYOUTS = st.sampled_from(
    [{}, {"indent": 2}, {"indent": "\t", "ensure_ascii": False}, {"separators": (",", ":")},
     {"indent": 0}]
)  # fmt: skip


@settings(max_examples=30)
@given(SETTINGS, LAYOUTS, st.sampled_from(FORMS))
def test_any_settings_in_any_layout_come_back_byte_for_byte(
    values: dict[str, Any], layout: dict[str, Any], form: Form
) -> None:
    text = json.dumps(values, **layout)
    ours = with_entries(text, our_entries(form))
    assert without_entries(ours) == text
    found = json.loads(ours)
    assert {key: value for key, value in found.items() if key != "hooks"} == {
        key: value for key, value in values.items() if key != "hooks"
    }
    assert sorted(entries(ours), key=str) == sorted(our_entries(form).items(), key=str)
