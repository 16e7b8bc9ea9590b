"""Kill the real client at random instants: nothing that it told anybody is lost."""

import json
import os
import random
import re
import subprocess
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from tests.conftest import until
from tests.real.person import Person
from tests.real.scenarios import SUB, TOOLS, agent, bash
from tests.real.scene import living, needs_claude, settle
from tests.real.script import Say, Script

pytestmark = needs_claude
KILLS = int(os.environ.get("TEST_KILLS", "10"))
SEED = int(os.environ.get("TEST_SEED", "19"))
SECS = (0.3, 4.0)  # from before the first hook to behind the last
GONE_SECS = 150  # the stack looks every minute who has gone
BUSY = Script(
    "busy",
    [
        [Say("I look."), bash("pwd")],
        [bash("sleep 0.2; echo 1"), bash("exit 3", fails=True)],
        [agent(SUB)],
        [bash("ls")],
        [Say("That was all.")],
    ],
)
# Settings name it in place of the hook: it keeps what a call's hook was told, and becomes the hook.
KEEPING = """#!/bin/sh
[ "$1" = pre_tool_use ] || exec {hook} "$@"
told=$(mktemp {folder}/XXXXXX) && cat > "$told" && exec {hook} "$@" < "$told"
"""
HOOK = re.compile(r'/[^" ]+/hivepipe/hooks/\w+/hook\b')


def test_what_a_killed_client_told_is_all_there() -> None:
    with living(BUSY, SUB) as person:
        told = keep_what_is_told(person)
        drawn = random.Random(SEED)
        for _ in range(KILLS):
            kill_after(person, drawn.uniform(*SECS))
        settle(person)
        until(lambda: all_have_ended(person), "a killed session never ends", GONE_SECS)
        settle(person)
        compare_calls(person, told)
        compare_archives(person)
        compare_costs(person)


def keep_what_is_told(person: Person) -> Path:
    """Let every hook of a call keep its payload before it starts; return the folder."""
    folder = person.root / "told"
    folder.mkdir()
    settings = person.project / ".claude" / "settings.local.json"
    text = settings.read_text()
    (hook,) = {*HOOK.findall(text)}
    keeping = person.root / "keeping"
    keeping.write_text(KEEPING.format(hook=hook, folder=folder))
    keeping.chmod(0o755)
    settings.write_text(HOOK.sub(str(keeping), text))
    return folder


def kill_after(person: Person, secs: float) -> None:
    """Run the client and kill it, if it still runs after that time."""
    words = ["-p", BUSY.prompt("Please work"), "--allowedTools", TOOLS]
    with subprocess.Popen(
        [str(person.claude), *words],
        cwd=person.project,
        env=person.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as client:
        try:
            client.wait(secs)
        except subprocess.TimeoutExpired:
            client.kill()


def sessions(person: Person) -> list[dict[str, Any]]:
    found = person.json("sessions", "--all")
    return list(found["sessions"])


def all_have_ended(person: Person) -> bool:
    return all(each["status"] == "ended" for each in sessions(person))


def compare_calls(person: Person, told: Path) -> None:
    """Each session has as many calls as its hooks were told of."""
    wanted: dict[str, set[str]] = {}
    for path in told.iterdir():
        try:
            payload = json.loads(path.read_text())
        except ValueError:
            continue  # the client was killed while it wrote
        wanted.setdefault(payload["session_id"], set()).add(payload["tool_use_id"])
    found = {each["id"]: each["calls"] for each in sessions(person) if each["calls"]}
    assert found == {session: len(ids) for session, ids in wanted.items()}


def compare_archives(person: Person) -> None:
    """Each transcript has an archive with the same bytes, and no other has one."""
    known = {each["id"] for each in sessions(person)}
    wanted = {
        str(path): zlib.crc32(path.read_bytes())
        for session in known
        for path in person.transcripts(session)
    }
    listed = person.json("archive", "list", "--agents")["archives"]
    sources = [each["meta"]["source"] for each in listed]
    assert {each["path"]: int(each["crc32"], 16) for each in sources} == wanted


def compare_costs(person: Person) -> None:
    """Messages and tokens of each session are those that its transcripts have."""
    wanted = {each["id"]: spent(person, each["id"]) for each in sessions(person)}
    costs = person.json("costs", "--by", "session")["costs"]
    found = {
        each["session"]: Counter(
            messages=each["messages"],
            input=each["tokens"]["input"],
            output=each["tokens"]["output"],
            cache_read=each["tokens"]["cache_read"],
        )
        for each in costs
    }
    assert found == {session: tokens for session, tokens in wanted.items() if tokens}


def spent(person: Person, session: str) -> Counter[str]:
    """Return what the last line of every message says of its tokens."""
    usages: dict[str, dict[str, Any]] = {}
    for path in person.transcripts(session):
        for line in path.read_text().splitlines():
            message = json.loads(line).get("message", {})
            if "usage" in message and message["model"] != "<synthetic>":
                usages[message["id"]] = message["usage"]
    total: Counter[str] = Counter()
    for usage in usages.values():
        total.update(
            messages=1,
            input=usage["input_tokens"],
            output=usage["output_tokens"],
            cache_read=usage["cache_read_input_tokens"],
        )
    return total
