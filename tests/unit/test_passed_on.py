"""The native hook passes on exactly the environment variables that the intake reads."""

import re

from hivepipe.settings import ALIASES
from hivepipe.stack.hook_bundle import MODULES, source_of
from tests.conftest import ROOT

READ = re.compile(
    r"\b(?:variable|_own_folder|environment|of_this_process|switched_on|switched_off|number)\(\s*\"([A-Z_]+)\""
    r"|folder_variable(?:: str)? ?= ?\"([A-Z_]+)\"|for name in \(\"(CI)\", \"(CLAUDE_\w+)\"\)"
)
# The native hook acts on the first two itself and already knows the state folder.
NOT_PASSED_ON = {"HIVEPIPE_DISABLED", "HIVEPIPE_NESTED", "XDG_STATE_HOME"}
# Only workers read these.
OF_WORKERS = re.compile(r"HIVEPIPE_(HIVE_\w+|IDLE_SECS|STALLED_SECS|LOST_SECS)")


def passed_on() -> set[str]:
    source = (ROOT / "native" / "hook.c").read_text()
    table = source.split("wanted[] = {")[1].split("};")[0]
    return set(re.findall(r'"(\w+)"', table))


def read_by_the_intake() -> set[str]:
    texts = [source_of(name).read_text() for name in MODULES]
    found = {name for text in texts for names in READ.findall(text) for name in names if name}
    found |= {old for name in found for old in ALIASES.get(name, ())}
    return {name for name in found - NOT_PASSED_ON if not OF_WORKERS.fullmatch(name)}


def test_exactly_the_variables_that_the_intake_reads_are_passed_on() -> None:
    assert passed_on() == read_by_the_intake()
