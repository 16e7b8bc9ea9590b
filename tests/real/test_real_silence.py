"""Without a message from hivepipe the client's requests equal those without hooks."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from tests.real.environment import client_environment, needs_claude
from tests.real.person import Person
from tests.real.scenarios import NOTE, bash
from tests.real.script import Call, Say, Script

pytestmark = needs_claude
WORK = Script(
    "work",
    [
        [Say("I write."), Call("Write", {"file_path": NOTE, "content": "one\n"})],
        # The client sends results of parallel calls in the order of their ends.
        [Call("Read", {"file_path": NOTE}), bash("sleep 1; ls /no/such/place", fails=True)],
        [Say("It is done.")],
    ],
)
AGAIN = Script("again", [[Say("Nothing is left.")]])
OF_A_RUN = (
    (r"real-\w{8}|real-[\w-]{8}", "ROOT"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID"),
    (r"\b[0-9a-f]{64}\b", "HASH"),
    (r"\bcch=[0-9a-f]+", "HASH"),
    # A line that any hook causes.
    (r"\\nPreCompact \[[^]]+/hook(?: pre_compact)?\] completed successfully", ""),
)
SAID = ("user", "assistant", "system", "attachment")  # The client's notes to itself vary.
OF_ANY_HOOK = "system/stop_hook_summary"  # The client writes this line for any Stop hook.


def test_every_request_and_line_is_as_without_hooks() -> None:
    with client_environment(WORK, AGAIN, is_recorded=False) as person:
        # A running stack may add the state of the session at the compaction.
        person.hivepipe("down")
        hooked, kinds = session_of(person)
    with client_environment(WORK, AGAIN, init=(), is_recorded=False) as person:
        bare, bare_kinds = session_of(person)
    assert [request["script"] for request in hooked] == ["work"] * 3 + ["compaction", "again"]
    assert [*differences(bare, hooked)] == []
    assert not bare_kinds - kinds
    assert {*(kinds - bare_kinds)} <= {OF_ANY_HOOK}


def session_of(person: Person) -> tuple[list[dict[str, str]], Counter[str]]:
    """Work, compact and go on; return the requests and the kinds of transcript lines."""
    session = person.ask(WORK.prompt("Please work"))["session_id"]
    person.ask("/compact keep names", "--resume", session)
    person.ask(AGAIN.prompt("Go on"), "--resume", session)
    (transcript,) = person.transcripts(session)
    lines = [json.loads(line) for line in transcript.read_text().splitlines()]
    requests = [
        {"script": request.script, **comparable(request.body)} for request in person.api.requests
    ]
    return requests, Counter(kind(line) for line in lines if line["type"] in SAID)


def comparable(body: dict[str, Any]) -> dict[str, str]:
    """Return the fields of a request as text, without the values that vary between runs."""
    fields = {name: json.dumps(value, sort_keys=True) for name, value in body.items()}
    for pattern, name in OF_A_RUN:
        fields = {field: re.sub(pattern, name, text) for field, text in fields.items()}
    return fields


def differences(
    ours: list[dict[str, str]], theirs: list[dict[str, str]]
) -> Iterator[tuple[int, str, str, str]]:
    """Yield each field that differs, with the text around the first difference."""
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        for field in sorted(one.keys() | other.keys()):
            first, second = one.get(field, ""), other.get(field, "")
            pairs = enumerate(zip(first, second, strict=False))
            at = next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))
            if first != second:
                yield number, field, first[at - 40 :][:400], second[at - 40 :][:400]


def kind(line: dict[str, Any]) -> str:
    """Return type, subtype and attachment type of a transcript line."""
    attached = line.get("attachment", {}).get("type")
    return "/".join(filter(None, (line["type"], line.get("subtype"), attached)))
