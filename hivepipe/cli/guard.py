"""Command `guard`: its rules and mode, and a replay of recorded calls."""

from dataclasses import asdict
from pathlib import Path

import click

from hivepipe.cli.parameters import Choice
from hivepipe.cli.tables import as_json, json_option, show_entries, show_json, show_table
from hivepipe.cli.terminal import say, say_prose
from hivepipe.errors import GuardError, os_error_as
from hivepipe.guard import messages, rules
from hivepipe.guard.check import MODES, guard_mode, limits, mode_path
from hivepipe.guard.client import WINDOW
from hivepipe.guard.replay import read_events, replay
from hivepipe.guard.rules import Limits
from hivepipe.home import locate, make_folders, write_small
from hivepipe.text.plurals import counted

_RULES = (rules.CANCELLED, rules.SHARED_DISK, rules.LOOP, rules.ALTERNATION, rules.POLLING)
_MODES_IN_WORDS = {
    "off": "no rule is applied, only cancelled tasks are stopped",
    "tasks": "a call that breaks a rule is denied in sessions with a task, warned about in others",
    "all": "a call that breaks a rule is denied in every session",
}


@click.group()
def guard() -> None:
    """Stop loops: `list` and `explain` the rules, `try` them on a file, set the `mode`."""


@guard.command(name="list")
@json_option
def list_rules() -> None:
    """List the rules with their thresholds, and the mode."""
    mode = guard_mode(locate(".").home)
    entries = [
        {"rule": rule, "warns_at": warns, "denies_from": denies}
        for rule, (warns, denies) in _numbers(limits()).items()
    ]
    if not as_json():
        say_prose(f"mode {mode}: {_MODES_IN_WORDS[mode]}", 2)
    columns = {"rule": "rule", "warns at": "warns_at", "denies from": "denies_from"}
    show_entries("rules", entries, columns, beside={"mode": mode})


@guard.command()
@click.argument("rule", type=Choice(_RULES))
@json_option
def explain(rule: str) -> None:
    """Explain one rule.

    The text says what the rule counts, what resets the count, and how to switch the rule off.
    """
    now = limits()
    lines = [messages.EXPLANATIONS[rule].format(limits=now, window=WINDOW)]
    if rule == rules.LOOP:
        lines.append(f"Waiting, which is never denied: {', '.join(now.waiting) or 'nothing'}.")
    if rule == rules.POLLING:
        lines.append(f"Tools: {', '.join(now.polls) or 'none'}.")
    if rule != rules.CANCELLED:
        lines.append(messages.SWITCH_OFF)
    text = "\n".join(lines)
    warns, denies = _numbers(now)[rule]
    if not show_json(rule=rule, warns_at=warns, denies_from=denies, text=text):
        for line in lines:
            say_prose(line, 2)


@guard.command(name="try")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def replay_file(file: Path) -> None:
    """Replay a file and show the calls that the guard would have denied.

    FILE is a transcript, or has a hook event on each line.
    """
    with os_error_as(GuardError, f"cannot read {file}"), file.open("rb") as lines:
        report = replay(read_events(lines), locate(".").home)
    if not report.events:
        raise GuardError(f"{file} is neither a transcript nor a file of hook events")
    warned = len(report.findings) - len(report.denied)
    findings = [asdict(each) for each in report.findings]
    denied = len(report.denied)
    if show_json(calls=report.calls, denied=denied, warned=warned, findings=findings):
        return
    say(f"{counted(report.calls, 'call')}, {denied} denied, {warned} warned")
    rows = [
        (f.line, "denied" if f.denied else "warned", f.rule, f.count, f.tool)
        for f in report.findings
    ]
    if rows:
        show_table(("line", "answer", "rule", "count", "tool"), rows)


@guard.command()
@click.argument("mode", type=Choice((*MODES, "default")), required=False)
@json_option
def mode(mode: str | None) -> None:
    """Show the mode, or set it for this home, from the next tool call on."""
    home = locate(".").home
    path = mode_path(home)
    if mode == "default":
        Path(path).unlink(missing_ok=True)
    elif mode:
        with os_error_as(GuardError, f"cannot write {path}"):
            make_folders(home)
            write_small(path, f"{mode}\n")
    now = guard_mode(home)
    if not show_json(mode=now, text=_MODES_IN_WORDS[now]):
        say_prose(f"{now}: {_MODES_IN_WORDS[now]}", 2)


def _numbers(now: Limits) -> dict[str, tuple[int | None, int | None]]:
    return {
        rules.CANCELLED: (None, 1),
        rules.SHARED_DISK: (None, 1),
        rules.LOOP: (now.loop_warn, now.loop_deny),
        rules.ALTERNATION: (now.alternation_warn, now.alternation_deny),
        rules.POLLING: (None, now.empty_polls if now.polls else None),
    }
