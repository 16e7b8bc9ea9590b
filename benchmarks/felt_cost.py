"""The cost of hooks in the real Claude Code, as the client itself measures it.

    python benchmarks/felt_cost.py [--rounds 9] [--calls 40] [--check] [--json FILE]

The newest pinned client plays a turn of Read calls, one per answer, against a fake of the Messages
API, with only loopback if this user may make a network namespace. Each kind of hook has its own
home, and the kinds take turns. Two figures are read for each: the time of the turn (the client's
`duration_ms`) and the time of each hook (from the client's debug file, because transcripts have it
only for hooks that print). Without a client that `make real` has fetched, nothing is measured.
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from figures import Figure, conclude, parser

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.real.environment import CLAUDE, client_environment  # noqa: E402
from tests.real.fetch import kept, pinned  # noqa: E402
from tests.real.person import Person  # noqa: E402
from tests.real.run import namespace  # noqa: E402
from tests.real.script import CWD, Call, Say, Script  # noqa: E402
from tests.real.test_real_plugin import PLUGIN, repository  # noqa: E402

PYTHON = [os.path.realpath(sys.executable), "-I", "-S", "-c"]
NOTHING = "a C program that does nothing"
BARE, PRINTS = "bare Python", "bare Python that prints"
NONE, UP, PLUGIN_FORM = "none", "hivepipe in the settings", "hivepipe as a plugin"
HOOKS = ("PreToolUse", "PostToolUse", "PostToolBatch")  # the hooks of one call
MOST_OVER_BARE = {UP: 1.0, PLUGIN_FORM: 1.0}
_ADDED = "felt in Claude Code: added to a call by"
_FINISHED = re.compile(r"Hooks: (\w+)\S* \[.*\].* finished with status 0 \((\d+)ms\)")


@dataclass
class Times:
    """Times in milliseconds as the client reports them: of each turn, and of hooks by event."""

    turns: list[float] = field(default_factory=list)
    hooks: dict[str, list[float]] = field(default_factory=dict)

    def against(self, none: "Times", calls: int) -> dict[str, float]:
        """Return what a call adds to the time of the round without hooks, and each hook's time."""
        pairs = zip(self.turns, none.turns, strict=True)
        more = statistics.median((turn - bare) / calls for turn, bare in pairs)
        hooks = {name: statistics.median(self.hooks[name]) for name in HOOKS if name in self.hooks}
        return {"a call": more, **hooks}


def main() -> None:
    """Measure in a separate process, which has only loopback and the client on its path."""
    made = parser(__doc__)
    made.add_argument("--rounds", type=int, default=9)
    made.add_argument("--calls", type=int, default=40)
    options = made.parse_args()
    program = kept(pinned("newest"))
    if CLAUDE:
        measure(options)
    elif program is None:
        print("Claude Code is missing (`make real` fetches it): nothing is measured")
        conclude(options, [])
    else:
        command = [*namespace(), sys.executable, __file__, *sys.argv[1:]]
        env = {**os.environ, "TEST_CLAUDE": str(program)}
        raise SystemExit(subprocess.run(command, env=env, check=False).returncode)


def measure(options: Namespace) -> None:
    """Measure all kinds of hooks in turns. The first round only fills the caches."""
    times = {name: Times() for name in FORMS}
    with ExitStack() as stack:
        people = {
            name: stack.enter_context(set_up(prepare, options.calls, *init))
            for name, (prepare, init) in FORMS.items()
        }
        for number in range(options.rounds + 1):
            for name, person in people.items():
                play(person, options.calls, times[name] if number else Times())
            print(f"round {number} of {options.rounds}", flush=True)
    found = {name: said.against(times[NONE], options.calls) for name, said in times.items()}
    found[NONE] = {"the turn": statistics.median(times[NONE].turns)}
    print(table(found))
    conclude(options, figures(found), {"calls": options.calls, "forms": found})


Found = dict[str, dict[str, float]]


def figures(found: Found) -> list[Figure]:
    """Return the figures with bounds: ratios to a bare interpreter in the same rounds."""
    bare = found[BARE]["a call"]
    more = (found[UP]["a call"] - found[NOTHING]["a call"]) / len(HOOKS)
    return [
        Figure(f"felt in Claude Code: a hook, above {NOTHING}", more, "ms", 1),
        *(
            Figure(f"{_ADDED} {name}", said["a call"] / bare, f"x {BARE}", most)
            for name, said in found.items()
            if (most := MOST_OVER_BARE.get(name)) and bare
        ),
    ]


def table(found: Found) -> str:
    """Return a table in Markdown, in milliseconds."""
    lines = [f"| hooks | a call | {' | '.join(HOOKS)} |", f"|--|--|{'--|' * len(HOOKS)}"]
    for name, said in found.items():
        cells = ("" if said.get(each) is None else f"{said[each]:.1f}" for each in HOOKS)
        call = f"{said['a call']:.1f}" if "a call" in said else "0"
        lines.append(f"| {name} | {call} | {' | '.join(cells)} |")
    return "\n".join(lines)


def play(person: Person, calls: int, times: Times) -> None:
    """Play one turn, and add the times that the client reports."""
    log = person.root / "debug.log"
    log.unlink(missing_ok=True)
    report = person.ask(reads(calls).prompt("Please read"), "--debug-file", str(log))
    person.api.requests.clear()
    times.turns.append(float(report["duration_ms"]))
    for event, ms in _FINISHED.findall(log.read_text()):
        times.hooks.setdefault(event, []).append(float(ms))


def reads(calls: int) -> Script:
    """Return a script that reads different files, because repeated reads would count as a loop."""
    read = [[Call("Read", {"file_path": f"{CWD}/note-{at}.txt"})] for at in range(calls)]
    return Script("reads", [*read, [Say("Done.")]])


# ---- the kinds of hooks


@contextmanager
def set_up(prepare: "Prepare", calls: int, *init: str) -> Iterator[Person]:
    """Yield a person with files to read, whose hooks are prepared."""
    with client_environment(reads(calls), init=init, is_recorded=False) as person:
        for at in range(calls):
            person.write(f"note-{at}.txt", "one\ntwo\n")
        prepare(person)
        yield person


def instead(program: str, *arguments: str) -> "Prepare":
    """Return a function that registers a program instead of hivepipe for each event."""

    def prepare(person: Person) -> None:
        path = person.project / ".claude" / "settings.local.json"
        settings = json.loads(path.read_text())
        handler = {"type": "command", "command": program, "args": arguments}
        for entries in settings["hooks"].values():
            for entry in entries:
                entry["hooks"] = [handler]
        path.write_text(json.dumps(settings))
        person.hivepipe("down")

    return prepare


def nothing(person: Person) -> None:
    """Register a static program that does nothing, instead of hivepipe."""
    program = str(person.root / "nothing")
    target = f"{platform.machine()}-linux-musl"
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target, "-static", "-O2"]
    source = b"int main(void) { return 0; }"
    subprocess.run([*compiler, "-x", "c", "-", "-o", program], input=source, check=True)
    instead(program)(person)


def is_up(person: Person) -> None:
    person.hivepipe("up", "-d")


def is_up_with_python(person: Person) -> None:
    person.env["HIVEPIPE_HOOK"] = "python"
    is_up(person)


def is_down(person: Person) -> None:
    person.hivepipe("down")


def plugin(person: Person) -> None:
    clone = repository(person.root / "clone")
    person.client("plugin", "marketplace", "add", str(clone))
    person.client("plugin", "install", PLUGIN)


def plugin_up(person: Person) -> None:
    plugin(person)
    person.hivepipe("init", "--no-probe")
    is_up(person)


def plugin_down(person: Person) -> None:
    plugin_up(person)
    is_down(person)


def plugin_alone(person: Person) -> None:
    """Install the plugin without the package; the package is not on PATH."""
    plugin(person)
    package = str(Path(sys.executable).parent)
    kept = [folder for folder in person.env["PATH"].split(os.pathsep) if folder != package]
    person.env["PATH"] = os.pathsep.join(kept)


Prepare = Callable[[Person], object]
LOCAL = ("--local",)
FORMS: dict[str, tuple[Prepare, tuple[str, ...]]] = {
    NONE: (lambda _: None, ()),
    NOTHING: (nothing, LOCAL),
    BARE: (instead(*PYTHON, "pass"), LOCAL),
    PRINTS: (instead(*PYTHON, "print('ok')"), LOCAL),
    UP: (is_up, LOCAL),
    f"{UP}, Python hook": (is_up_with_python, LOCAL),
    f"{UP}, stack down": (is_down, LOCAL),
    PLUGIN_FORM: (plugin_up, ()),
    f"{PLUGIN_FORM}, stack down": (plugin_down, ()),
    f"{PLUGIN_FORM} without the package": (plugin_alone, ()),
}


if __name__ == "__main__":
    main()
