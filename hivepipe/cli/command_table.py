"""The commands of `hivepipe`: their groups, their modules, and their line in `--help`.

The lines stand here so that `--help` imports no command: all of them together take four times as
long as the shortest. A line fits 80 columns with its name; `--help` of a command says more.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """Where a command is (a module below hivepipe.cli), and what it does in one line."""

    module: str
    summary: str


GROUPS = {
    "Set up": {
        "init": Entry("install", "Install the hooks into Claude Code's settings."),
        "migrate": Entry("migrate", "Move over from the bash hooks that hivepipe replaces."),
        "uninstall": Entry("install", "Remove the hooks; with --purge the data too."),
        "doctor": Entry("doctor", "Check the installation and say how to repair it."),
        "config": Entry("config", "Show every setting and where it comes from."),
        "trust": Entry("trust", "Show what a repository asks for, and say yes or no."),
        "what": Entry("what", "Show what is recorded here and where it is kept."),
        "home": Entry("stack", "Print the folder of what was recorded."),
        "move-home": Entry("move_home", "Move the data out of the work tree, or into it."),
        "off": Entry("switch", "Stop recording this project."),
        "on": Entry("switch", "Record this project again."),
        "completion": Entry("completion", "Print the shell completion script."),
        "demo": Entry("demo.command", "Run a day of work in a temporary folder."),
    },
    "Every day": {
        "sessions": Entry("sessions", "List the open sessions."),
        "session": Entry("sessions", "Show one session: its time line, its log."),
        "search": Entry("search", "Search the kept transcripts and summaries."),
        "transcript": Entry("transcript", "Show a conversation as people read it."),
        "summaries": Entry("summaries", "Show session summaries; enable a language model."),
        "status": Entry("status", "Show the stack, the queues and the alerts."),
    },
    "Look": {
        "tail": Entry("tail", "Follow the events as they are recorded."),
        "agents": Entry("agents", "List the subagents."),
        "agent": Entry("agents", "Show one subagent."),
        "skills": Entry("skills", "List the skills and how often they were used."),
        "context": Entry("context", "Show what Claude is told when a session starts."),
        "export": Entry("export", "Print all rows as JSON lines."),
    },
    "Cost": {
        "costs": Entry("costs", "Show tokens and what they cost."),
        "credentials": Entry("credentials", "Manage the API keys for summaries."),
    },
    "Memory and archive": {
        "memory": Entry("memory", "Search what agents wrote down."),
        "archive": Entry("archive", "List, show and verify the kept transcripts."),
        "redact": Entry("redact", "Print a file without its secrets."),
        "forget": Entry("forget", "Delete a session from every place."),
        "backup": Entry("backup", "Write database, archives and settings to a file."),
        "restore": Entry("backup", "Restore a backup."),
    },
    "Agents and tasks": {
        "task": Entry("task", "Add, assign, cancel and list tasks."),
        "profile": Entry("profile", "Manage long-lived agents and their files."),
        "guard": Entry("guard", "Show and set the rules that stop loops."),
        "hive": Entry("hive.commands", "Start workers on tasks and follow them."),
    },
    "Operate": {
        "up": Entry("stack", "Start the stack of this project."),
        "down": Entry("stack", "Stop the stack; hooks keep their events on disk."),
        "restart": Entry("stack", "Stop the stack and start it again."),
        "stacks": Entry("stacks", "List all your stacks."),
        "logs": Entry("logs", "Show the logs of the stack's processes."),
        "dashboard": Entry("dashboard", "Serve the queues and metrics to a browser."),
        "disk": Entry("disk", "Show the size of each store; delete what expired."),
        "drain": Entry("drain", "Apply the events that wait on disk, without Redis."),
        "cleanup": Entry("cleanup", "Mark finished subagents as deleted."),
        "root": Entry("stack", "Print the folder of the hooks and workers."),
    },
    "RQ": {
        "failed": Entry("failed", "List, show, retry and discard failed jobs."),
        "rq": Entry("rq", "Run RQ's own commands, such as `rq -- info`."),
        "url": Entry("stack", "Print the address of Redis."),
    },
    "Import": {
        "import-queue": Entry("import_old", "Import an older file queue."),
        "import-db": Entry("import_old", "Import an older hive.db."),
    },
}

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
