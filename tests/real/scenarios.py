"""Scenarios for the real client: prompts, the scripts that answer them, options and files."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.real.script import CWD, Call, Cut, Refuse, Say, Script, Slow

TOOLS = "Bash,Read,Write,Edit,Glob,Grep,Skill,Agent,Task,TodoWrite,TaskCreate,TaskUpdate"
BASH, WRITE, READ, EDIT, AGENT = "Bash", "Write", "Read", "Edit", "Agent"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One session with a run of the client for each prompt, and the scripts of its subagents."""

    name: str
    prompts: tuple[Script, ...]
    agents: tuple[Script, ...] = ()
    fails: bool = False  # the client ends with an error
    files: Mapping[str, str] = field(default_factory=dict)  # path in the project -> text
    options: tuple[str, ...] = ()  # of the client
    tools: str = TOOLS  # tools that need no permission
    since: tuple[int, ...] = ()  # the first version of the client that supports the scenario


def bash(command: str, *, fails: bool = False) -> Call:
    return Call(BASH, {"command": command, "description": "By the fake"}, fails)


def agent(script: Script, kind: str = "general-purpose", *, fails: bool = False) -> Call:
    """Return a call that starts a subagent with a script."""
    prompt = script.prompt("Look around")
    arguments = {"description": "Look", "prompt": prompt, "subagent_type": kind}
    return Call(AGENT, arguments, fails)


NOTE = f"{CWD}/note.txt"
ABSENT = {"file_path": NOTE, "old_string": "never written", "new_string": "y"}
SUB = Script("sub", [[bash("pwd")], [Say("Nothing special here.")]])
OTHER = Script("other", [[bash("ls")], [bash("ls /no/such/place", fails=True)], [Say("Done.")]])
INNER = Script("inner", [[bash("true")], [Say("The inner one is done.")]])
OUTER = Script("outer", [[agent(INNER)], [Say("The outer one is done.")]])
LOOK = [bash("pwd")]
END = [Say("This is the end, quokka.")]
WHOAMI = {"command": "whoami", "description": "By the fake"}
DENIED = Call(BASH, WHOAMI, fails=True, is_denied=True)
TOUCH = {"command": "touch it", "description": "By the fake"}
UNASKED = Call(BASH, TOUCH, fails=True, is_denied=True)
SKILL = Call("Skill", {"skill": "greet", "args": "the sun"})
NO_WHOAMI = ("--disallowedTools", "Bash(whoami)")
GREETING = "---\nname: greet\ndescription: Greet\n---\nGreet well.\n"
GREET = {".claude/skills/greet/SKILL.md": GREETING}
SCOUTING = "---\nname: scout\ndescription: A scout\n---\nYou look around.\n"
SCOUT = {".claude/agents/scout.md": SCOUTING}


SCENARIOS = (
    Scenario("an answer", (Script("answer", [[Say("Good morning, said the quokka.")]]),)),
    Scenario(
        "every file tool",
        (
            Script(
                "files",
                [
                    [Say("I write."), Call(WRITE, {"file_path": NOTE, "content": "one\ntwo\n"})],
                    [Call(READ, {"file_path": NOTE})],
                    [Call(EDIT, {"file_path": NOTE, "old_string": "two", "new_string": "three"})],
                    [Call(EDIT, ABSENT, fails=True, is_invalid=True)],
                    [bash("cat note.txt"), bash("ls /no/such/place", fails=True)],
                    [Say("The note says three, quokka.")],
                ],
            ),
        ),
    ),
    Scenario(
        "calls at once",
        (
            Script(
                "parallel",
                [
                    [bash("sleep 0.3; echo 1"), bash("echo 2"), bash("exit 3", fails=True)],
                    [Say("All three are back, quokka.")],
                ],
            ),
        ),
    ),
    Scenario(
        "an agent",
        (Script("one-agent", [[agent(SUB)], [Say("It looked around, quokka.")]]),),
        (SUB,),
    ),
    Scenario(
        "agents at once",
        (Script("two-agents", [[agent(SUB), agent(OTHER)], [Say("Both are back, quokka.")]]),),
        (SUB, OTHER),
    ),
    Scenario(
        "an agent of an agent",
        (Script("nested", [[agent(OUTER)], [Say("Nested and back, quokka.")]]),),
        (OUTER, INNER),
        since=(2, 1, 197),
    ),
    Scenario(
        "no such agent",
        (
            Script(
                "bad-agent",
                [[agent(SUB, "no-such-type", fails=True)], [Say("There is none, quokka.")]],
            ),
        ),
    ),
    Scenario(
        "resumed twice",
        (
            Script("first", [[bash("echo first")], [Say("One, quokka.")]]),
            Script("second", [[bash("echo second")], [Say("Two, quokka.")]]),
            Script("third", [[Say("Three, quokka.")]]),
        ),
    ),
    Scenario("an error of the API", (Script("refused", [Refuse(400, "invalid_request_error")]),),
             fails=True),
    Scenario("no key", (Script("no-key", [Refuse(401, "authentication_error")]),), fails=True),
    Scenario("too many requests", (Script("often", [Refuse(429, "rate_limit_error", END)]),)),
    Scenario("overloaded", (Script("busy", [LOOK, Refuse(529, "overloaded_error", END)]),)),
    Scenario("a stream is cut", (Script("cut", [LOOK, Cut(END)]),)),
    Scenario("a slow stream", (Script("slow", [Slow(LOOK, 2), Slow(END, 2)]),)),
    Scenario("denied by a rule", (Script("ruled", [[DENIED], END]),), options=NO_WHOAMI),
    Scenario("denied by the mode", (Script("unasked", [[UNASKED], END]),), tools="Read"),
    Scenario("a skill by the tool", (Script("skilled", [[SKILL], LOOK, END]),), files=GREET),
    Scenario("an agent of the project", (Script("own", [[agent(SUB, "scout")], END]),), (SUB,),
             files=SCOUT),
    Scenario("as an agent", (Script("as-agent", [LOOK, END]),), files=SCOUT,
             options=("--agent", "scout")),
    Scenario("another model", (Script("haiku", [LOOK, END]),), options=("--model", "haiku")),
)  # fmt: skip
