"""The commands of `hivepipe`: their groups, their modules, and their line in `--help`.

The lines are in this table so that `--help` imports no command: importing all of them takes four
times as long as the shortest command. A line fits into 80 columns with its command's name.
"""

from typing import NamedTuple


class Entry(NamedTuple):
    """A command: its module, as a path below hivepipe.cli, and its line in `--help`."""

    module: str
    summary: str


GROUPS = {
    "Record": {
        "init": Entry("install", "Install the hooks into Claude Code's settings."),
        "uninstall": Entry("install", "Remove the hooks; with --purge the data too."),
        "on": Entry("switch", "Resume recording this project."),
        "off": Entry("switch", "Stop recording this project."),
        "what": Entry("what", "Show what is recorded here and where it is kept."),
        "config": Entry("config", "Show every setting and where it comes from."),
        "trust": Entry("trust", "Review what a repository asks for, and trust it."),
        "home": Entry("home", "Print the folder of this project's data."),
        "move-home": Entry("move_home", "Move the data out of the work tree, or into it."),
        "forget": Entry("forget", "Delete everything about a session."),
        "migrate": Entry("migrate", "Move over from the bash hooks that hivepipe replaces."),
        "import-queue": Entry("import_old", "Import an old file queue."),
        "import-db": Entry("import_old", "Import an old hive.db."),
        "demo": Entry("demo.command", "Run a day of work in a temporary folder."),
    },
    "Look": {
        "status": Entry("status", "Show the stack, the queues and the alerts."),
        "sessions": Entry("sessions", "List the open sessions."),
        "session": Entry("sessions", "Show one session: its time line or its log."),
        "statusline": Entry("statusline", "Print the line for Claude Code's status line."),
        "tail": Entry("tail", "Follow the events as they are recorded."),
        "search": Entry("search", "Search the archived transcripts and summaries."),
        "transcript": Entry("transcript", "Show a conversation as text, Markdown or HTML."),
        "summaries": Entry("summaries", "Show session summaries; enable a language model."),
        "costs": Entry("costs", "Show tokens and their cost."),
        "skills": Entry("skills", "List the skills and how often they were used."),
        "archive": Entry("archive", "List, show and verify the archived transcripts."),
        "export": Entry("export", "Print all rows as JSON lines."),
        "redact": Entry("redact", "Print a file without its secrets."),
        "logs": Entry("logs", "Show the logs of the stack's processes."),
        "web": Entry("web", "Show all projects in a browser, live."),
        "team": Entry("team.commands", "Share the work of many machines in one PostgreSQL."),
        "mcp": Entry("mcp", "Serve the recorded sessions to Claude as tools."),
    },
    "Control": {
        "up": Entry("stack", "Start the stack of this project."),
        "down": Entry("stack", "Stop the stack; hooks keep their events on disk."),
        "restart": Entry("stack", "Stop the stack and start it again."),
        "stacks": Entry("stacks", "List all of your stacks."),
        "credentials": Entry("credentials", "Manage the API keys for summaries."),
        "rq": Entry("rq", "Run RQ's own commands, such as `rq -- info`."),
        "url": Entry("stack", "Print the address of Redis."),
        "root": Entry("stack", "Print the folder of the hooks and workers."),
        "completion": Entry("completion", "Print the shell completion script."),
    },
    "Repair": {
        "doctor": Entry("doctor", "Check the installation and name the repairs."),
        "failed": Entry("failed", "List, show, requeue and discard failed jobs."),
        "drain": Entry("drain", "Store the events that wait on disk, without Redis."),
        "disk": Entry("disk", "Show the size of each kind of data; delete expired data."),
        "cleanup": Entry("cleanup", "Mark finished subagents as deleted."),
        "backup": Entry("backup", "Write database, archives and settings to a file."),
        "restore": Entry("backup", "Restore a backup."),
    },
    "Agents": {
        "agents": Entry("agents", "List the subagents."),
        "agent": Entry("agents", "Show one subagent."),
        "context": Entry("context", "Show what Claude is told when a session starts."),
        "memory": Entry("memory", "Search the memory files of agents."),
        "profile": Entry("profile", "Manage long-lived agents and their files."),
        "guard": Entry("guard", "Show and set the rules that stop loops."),
    },
    "Workers": {
        "hive": Entry("hive.commands", "Start workers on tasks and follow them."),
        "task": Entry("task", "Add, assign, cancel and list tasks."),
    },
}

OLD_NAMES = {"dashboard": "web"}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}
