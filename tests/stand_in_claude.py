#!/usr/bin/env python3
"""A fake `claude -p`: it speaks stream-json, keeps sessions, runs hooks and rejects bad options.

The task scripts it in a line `SCRIPT {"runs": [[action, ...], ...]}`, with one list for each run of
the session. Further runs only say that there is nothing to do. Actions:

    say TEXT            write a text                tell FILE        write the text of a file
    call TOOL [ARG]     call a tool                 fail TOOL        make a call that fails
    status JSON         write status.json atomically
    raw TEXT            write status.json in place
    cost DOLLARS        write a result line with this running total
    total BEFORE OWN    write the result line of a session with so many requests before this run
                        and so many in it
    models DOLLARS ...  write a result line with the costs of each model
    hang                sleep until a signal        wait FILE        wait until a file exists
    ignore              ignore SIGTERM from now on  exit CODE        exit
    crash               kill itself with SIGKILL    report TEXT      write run-report.md
    noise TEXT          write a line that is no JSON
    torn                write half a line without a newline
    orphan              leave a process behind
    run COMMAND         run a command by Bash, if the options allow it

Every run adds a line with its arguments to $HOME/runs.log. Two processes in one session, which must
never happen, add a line to $HOME/violations.log.
"""

import sys

if sys.argv[1:] == ["--version"]:  # asked before each run, without the imports
    print("2.1.290 (Claude Code)")
    sys.exit()

import fcntl
import json
import os
import re
import signal
import subprocess
import time
import uuid
from pathlib import Path

FLAGS = ("-p", "--print", "--verbose", "--dangerously-skip-permissions")
WITH_VALUE = (
    "--session-id",
    "--resume",
    "--output-format",
    "--settings",
    "--permission-mode",
    "--model",
    "--max-turns",
)
WITH_VALUES = ("--add-dir", "--allowedTools", "--disallowedTools")
MODES = ("default", "acceptEdits", "plan", "bypassPermissions", "dontAsk")
MODEL_COUNTS = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
RUN_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)
HOME = Path(os.environ.get("HOME", "/nonexistent"))


def refuse(text):
    sys.stderr.write(f"{text}\n")
    sys.exit(1)


def read_options(words):
    options, prompt, at = {}, [], 0
    while at < len(words):
        word = words[at]
        at += 1
        if word in FLAGS:
            options[word] = True
        elif word in WITH_VALUE:
            if at >= len(words):
                refuse(f"error: option '{word} <value>' argument missing")
            options[word] = words[at]
            at += 1
        elif word in WITH_VALUES:  # as the real one: all words up to the next flag
            values = []
            while at < len(words) and not words[at].startswith("-"):
                values.append(words[at])
                at += 1
            options[word] = values
        elif word.startswith("-"):
            refuse(f"error: unknown option '{word}'")
        else:
            prompt.append(word)
    return options, " ".join(prompt)


def fits(rule, command):
    """Match `git commit:*` and `git commit *` by their beginning, and any other rule exactly."""
    stem = rule.removesuffix(":*").removesuffix(" *")
    return command == stem or (stem != rule and command.startswith(f"{stem} "))


def check(options):
    check_mode(options)
    check_session(options)


def check_mode(options):
    if os.environ.get("CLAUDECODE"):
        refuse("Error: Claude Code cannot be launched inside another Claude Code session.")
    if "-p" not in options and "--print" not in options:
        refuse("Error: this stand-in knows -p only")
    if options.get("--output-format") == "stream-json" and "--verbose" not in options:
        refuse("Error: When using --print, --output-format=stream-json requires --verbose")
    if options.get("--permission-mode", "default") not in MODES:
        refuse("error: option '--permission-mode <mode>' argument is invalid")
    if "--dangerously-skip-permissions" in options and os.geteuid() == 0:
        refuse("--dangerously-skip-permissions cannot be used with root/sudo privileges")


def check_session(options):
    if "--session-id" in options:
        if "--resume" in options:
            refuse("Error: --session-id can only be used with --resume if --fork-session is given")
        try:
            uuid.UUID(options["--session-id"])
        except ValueError:
            refuse("Error: Invalid session ID. Must be a valid UUID.")
    for folder in options.get("--add-dir", []):
        if not os.path.isdir(folder):
            refuse(f"Error: {folder} is not a directory")


def settings_of(options):
    """Return the hooks of all settings of a session; equal handlers count once."""
    files = [HOME / ".claude/settings.json", Path(".claude/settings.json")]
    files += [Path(".claude/settings.local.json")]
    texts = [path.read_text() for path in files if path.exists()]
    if "--settings" in options:
        said = options["--settings"]
        try:
            texts.append(said if said.startswith("{") else Path(said).read_text())
        except OSError:
            refuse(f"Error: Settings file not found: {said}")
    hooks = {}
    for text in texts:
        try:
            found = json.loads(text)
        except ValueError:
            refuse("Error: Invalid JSON provided to --settings")
        for event, groups in found.get("hooks", {}).items():
            for group in groups:
                for handler in group["hooks"]:
                    if handler not in hooks.setdefault(event, []):
                        hooks[event].append(handler)
    return hooks


class Session:
    """One run of a session."""

    def __init__(self, options, prompt):
        self.options = options
        self.id = options.get("--resume") or options.get("--session-id") or str(uuid.uuid4())
        slug = re.sub(r"[^A-Za-z0-9]", "-", os.getcwd())
        folder = HOME / ".claude" / "projects" / slug
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / f"{self.id}.jsonl"
        self.lock = open(folder / f"{self.id}.lock", "w")  # noqa: SIM115
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with open(HOME / "violations.log", "a") as log:
                log.write(f"{self.id}: two processes at once\n")
            refuse(f"Error: Session ID {self.id} is already in use.")
        if "--resume" in options and not self.file.exists():
            refuse(f"No conversation found with session ID: {self.id}")
        if "--session-id" in options and self.file.exists():
            refuse(f"Error: Session ID {self.id} is already in use.")
        self.hooks = settings_of(options)
        self.folder = Path(options.get("--add-dir", ["."])[0])
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.number = sum('"prompt"' in line for line in lines)
        first = json.loads(lines[0])["prompt"] if lines else prompt
        found = re.search(r"^SCRIPT (.*)$", first, re.MULTILINE)
        runs = json.loads(found[1])["runs"] if found else []
        self.actions = runs[self.number] if self.number < len(runs) else ["say nothing to do"]
        with self.file.open("a") as file:
            file.write(json.dumps({"type": "user", "sessionId": self.id, "prompt": prompt}) + "\n")

    def note(self, prompt):
        started = {
            "pid": os.getpid(),
            "session": self.id,
            "run": self.number,
            "arguments": sys.argv[1:],
            "variables": sorted(os.environ),
            "home": os.environ.get("HIVEPIPE_HOME"),
            "task": os.environ.get("HIVEPIPE_TASK_ID"),
            "worker": os.environ.get("HIVEPIPE_WORKER_ID"),
            "cwd": os.getcwd(),
            "prompt": prompt,
            "hooks": sorted(self.hooks),
        }
        with open(HOME / "runs.log", "a") as log:
            log.write(json.dumps(started) + "\n")

    def emit(self, line):
        line = {"session_id": self.id, "uuid": str(uuid.uuid4()), **line}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def fire(self, event, **fields):
        said = {
            "hook_event_name": event,
            "session_id": self.id,
            "transcript_path": str(self.file),
            "cwd": os.getcwd(),
            **fields,
        }
        for handler in self.hooks.get(event, []):
            arguments = handler.get("args")
            command = [handler["command"], *(arguments or [])]
            subprocess.run(
                command if arguments else handler["command"],
                shell=not arguments,
                input=json.dumps(said).encode(),
                capture_output=True,
                env={**os.environ, "CLAUDE_PROJECT_DIR": os.getcwd(), "CLAUDECODE": "1"},
                timeout=30,
            )

    def live(self, prompt):
        self.note(prompt)
        source = "resume" if self.number else "startup"
        self.fire("SessionStart", source=source, model="claude-opus-5")
        self.emit({"type": "system", "subtype": "init", "model": "claude-opus-5", "tools": []})
        self.fire("UserPromptSubmit", prompt=prompt)
        self.emit({"type": "user", "message": {"role": "user", "content": prompt[:200]}})
        for action in self.actions:
            name, _, rest = action.partition(" ")
            getattr(self, f"do_{name}")(rest)
        self.fire("Stop")
        self.fire("SessionEnd", reason="other")

    def do_say(self, text):
        self.say({"type": "text", "text": text})

    def say(self, block):
        message = {"id": f"msg_{uuid.uuid4().hex}", "role": "assistant", "content": [block]}
        self.emit({"type": "assistant", "message": message, "parent_tool_use_id": None})

    def do_call(self, rest, failed=False):
        tool, _, argument = rest.partition(" ")
        call = f"toolu_{uuid.uuid4().hex[:20]}"
        arguments = {"file_path": argument} if argument else {}
        self.say({"type": "tool_use", "id": call, "name": tool, "input": arguments})
        result = {"type": "tool_result", "tool_use_id": call, "content": "ok", "is_error": failed}
        self.emit({"type": "user", "message": {"role": "user", "content": [result]}})
        event = "PostToolUseFailure" if failed else "PostToolUse"
        self.fire(event, tool_name=tool, tool_input=arguments, tool_use_id=call, tool_response={})

    def do_run(self, command):
        """Run a command that a rule allows; refuse others, as the real one does in `-p`."""
        allowed = "--dangerously-skip-permissions" in self.options or any(
            rule == "Bash" or (rule.startswith("Bash(") and fits(rule[5:-1], command))
            for rule in self.options.get("--allowedTools", [])
        )
        if allowed:
            subprocess.run(command, shell=True, check=True, capture_output=True)
        else:
            self.say({"type": "text", "text": f"refused: {command}"})

    def do_fail(self, tool):
        self.do_call(tool, failed=True)

    def do_status(self, text):
        temporary = self.folder / "status.json.new"
        temporary.write_text(text)
        temporary.rename(self.folder / "status.json")

    def do_raw(self, text):
        (self.folder / "status.json").write_text(text)

    def do_report(self, text):
        (self.folder / "run-report.md").write_text(text)

    def do_cost(self, dollars, **more):
        result = {
            "type": "result",
            "subtype": "success",
            "is_error": False,
            "total_cost_usd": float(dollars),
            "num_turns": 1,
            "duration_ms": 1,
            "result": "said",
            "usage": {},
            **more,
        }
        self.emit(result)

    def do_models(self, rest):
        costs = {f"claude-{n}": {"costUSD": float(each)} for n, each in enumerate(rest.split())}
        self.do_cost("0.000001", modelUsage=costs)

    def do_total(self, rest):
        before, own = map(int, rest.split())
        counts = dict.fromkeys(MODEL_COUNTS, 10 * (before + own))
        models = {"claude-opus-5": {**counts, "costUSD": (before + own) / 100}}
        usage = dict.fromkeys(RUN_COUNTS, 10 * own)
        self.do_cost((before + own) / 100, modelUsage=models, usage=usage)

    def do_hang(self, _):
        while True:
            time.sleep(0.1)

    def do_ignore(self, _):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def do_wait(self, path):
        while not os.path.exists(path):
            time.sleep(0.02)

    def do_crash(self, _):
        os.kill(os.getpid(), signal.SIGKILL)

    def do_tell(self, path):
        self.do_say(Path(path).read_text())

    def do_exit(self, code):
        sys.exit(int(code))

    def do_noise(self, text):
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()

    def do_torn(self, _):
        sys.stdout.write('{"type": "assistant", "mess')
        sys.stdout.flush()

    def do_orphan(self, _):
        nowhere = subprocess.DEVNULL
        subprocess.Popen(["sleep", "120"], stdin=nowhere, stdout=nowhere, stderr=nowhere)


def main():
    options, prompt = read_options(sys.argv[1:])
    check(options)
    prompt = prompt or ("" if sys.stdin.isatty() else sys.stdin.read())
    if not prompt.strip():
        refuse("Error: Input must be provided either through stdin or as a prompt argument")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    Session(options, prompt).live(prompt)


if __name__ == "__main__":
    main()
