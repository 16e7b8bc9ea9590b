"""Our status line in a settings file: added around the one that was there, and removed again."""

import itertools
import json

import pytest

from hivepipe.errors import SettingsError
from hivepipe.install import json_text
from hivepipe.install.hook_entries import Form
from hivepipe.install.settings_text import with_entries
from hivepipe.install.status_line import command_of, with_status_line, without_status_line
from tests.unit.test_settings_text import FILES, FORMS, LAUNCHER, our_entries

THEIRS = r"""echo "it's $(date +%H:%M)" | cut -c1-80"""
OTHERS = {
    "alone": json.dumps({"statusLine": {"type": "command", "command": THEIRS}}),
    "with more": json.dumps(
        {"a": 1, "statusLine": {"command": THEIRS, "type": "command", "padding": 0}, "b": [2]},
        indent=4,
    ),
    "a byte order mark": '\ufeff{\n\t"statusLine": {"command": "ccline", "type": "command"}\n}\n',
}


def command(text: str) -> str:
    return str(json_text.parse(text.removeprefix("\ufeff"))["statusLine"]["command"])


@pytest.mark.parametrize("text", [t for t in FILES.values() if t.strip()] + [*OTHERS.values()])
def test_removing_our_status_line_restores_the_bytes(text: str) -> None:
    for form, elsewhere in itertools.product(FORMS, ("", THEIRS)):
        ours = with_status_line(text, form, LAUNCHER, elsewhere)
        assert "statusline" in command(ours)
        assert without_status_line(ours) == text


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_the_previous_command_is_added_to_ours_once(text: str) -> None:
    assert without_status_line(text) == text
    ours = with_status_line(text, Form.EXEC, LAUNCHER, "not this one")
    assert with_status_line(ours, Form.EXEC, LAUNCHER, "nor this one") == ours
    assert command_of(ours) == command_of(text) == command(text)
    assert (
        json.loads(ours.removeprefix("\ufeff"))["statusLine"].keys()
        == json.loads(text.removeprefix("\ufeff"))["statusLine"].keys()
    )


def test_the_entry_of_another_file_is_removed_with_ours() -> None:
    ours = with_status_line("{}", Form.EXEC, LAUNCHER, THEIRS)
    assert command_of(ours) == "", "the command belongs to another file"
    assert without_status_line(ours) == "{}"
    assert THEIRS not in command(with_status_line(ours, Form.EXEC, LAUNCHER, "newer"))


def test_later_edits_of_others_are_kept() -> None:
    ours = with_status_line(
        with_entries(OTHERS["with more"], our_entries()), Form.EXEC, LAUNCHER, ""
    )
    edited = ours.replace('"padding": 0', '"padding": 2').replace('"b": [', '"b": [3, ')
    left = json.loads(without_status_line(edited))
    assert left["statusLine"] == {"command": THEIRS, "type": "command", "padding": 2}
    assert left["b"] == [3, 2]


@pytest.mark.parametrize(
    "entry",
    ["none", {"type": "command"}, ["a"], {"command": 5}, {"type": "static", "command": "x"}],
)
def test_a_status_line_of_another_kind_is_refused_and_kept(entry: object) -> None:
    text = json.dumps({"statusLine": entry})
    with pytest.raises(SettingsError, match="not a command"):
        with_status_line(text, Form.EXEC, LAUNCHER, "")
    assert without_status_line(text) == text


@pytest.mark.parametrize(
    "typed", [r'"\u00e9 \ud800"', '"é \\ud800"', r'"\u2028\"$x\n"', '"\u202e"']
)
@pytest.mark.parametrize("launcher", [LAUNCHER, "/home/é/.local/state/hivepipe/hooks/0/hook"])
def test_escapes_stay_as_they_were_typed(typed: str, launcher: str) -> None:
    text = f'{{"statusLine": {{"command": {typed}}}}}'
    ours = with_status_line(text, Form.EXEC, launcher, "")
    assert ours.encode()
    assert without_status_line(ours) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *(("", after) for after in (" | cut -c1-80", " |cat", "; date", " 'open", " $(x)")),
        *((before, "") for before in ("date; ", "LC_ALL=C ", "/usr/bin/env A=1 ", "'my' ", "~")),
    ],
)
def test_a_users_command_around_ours_is_kept(before: str, after: str) -> None:
    for form in FORMS:
        ours = with_status_line("{}", form, LAUNCHER, "")
        typed = f"{before}{command(ours)}{after}"
        edited = json_text.replace(ours, ("statusLine", "command"), typed)
        assert with_status_line(edited, form, "/elsewhere/hivepipe/hooks/1/hook", "") == edited
        assert without_status_line(edited) == edited
        # In another settings file it would be shown twice.
        assert command_of(edited) == "" or not before
