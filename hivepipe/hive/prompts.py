"""What workers are told: templates that users edit, and the words in them that are replaced."""

from collections.abc import Mapping
from pathlib import Path
from string import Template

from hivepipe.errors import HiveError

WORKER = """\
You are worker $worker_id of project $project, in $project_path. You work alone: nobody reads along,
and your questions go through a file.

# Task

$task

# How you report

Your folder is $worker_folder. Write $worker_folder/status.json whenever your state changes: first a
temporary file beside it, then `mv` it there, so that nobody reads half of it. It holds one JSON
object:

- {"status": "working", "progress": "..."}: at the start, and after each larger step
- {"status": "need_input", "question": "...", "context": "...", "options": ["...", "..."]}: then
  stop; you are resumed with the answer
- {"status": "done", "result": "...", "files_changed": ["..."], "committed": true, "parked": true,
  "notes": "..."}: only after you wrote down what you learned (below) and committed your changes
- {"status": "error", "error": "...", "attempted": "...", "suggestion": "..."}: then stop
- {"status": "context_full", "progress": "...", "remaining": "..."}: when your context is nearly
  full; then stop

Add "timestamp" (ISO 8601, UTC) and "turn_count" if you know them.

Before you say done: run /session:park if it exists, else write what the next one should know into
$learnings_folder/$project-insights.md; commit with a message that says why; write
$worker_folder/run-report.md, a summary of this run.
"""

PARK = """\
Please run /session:park to capture your progress. If there is no such command: write what you did,
what is left and what the next one should know into $worker_folder/run-report.md, and what you
learned about this project into $learnings_folder/$project-insights.md. Change nothing else.
"""

DEFAULTS = {"worker": WORKER, "park": PARK}
ASK = "Are you still working? Go on with your task, and write status.json as you were told."
ANSWER = "Orchestrator response: {text}"


def prompt(folder: Path, name: str, words: Mapping[str, str]) -> str:
    """Return a template of the folder, or the one that comes along, its words replaced.

    HiveError: the file cannot be read, or has a `$` that is no word.
    """
    path = folder / f"{name}.md"
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        text = DEFAULTS[name]
    except (OSError, UnicodeDecodeError) as error:
        raise HiveError(f"{path} cannot be read: {error}") from None
    try:
        return Template(text).substitute(words)
    except (KeyError, ValueError) as error:
        known = ", ".join(f"${word}" for word in words)
        raise HiveError(f"{path}: {error} is none of {known} (a plain dollar sign is $$)") from None
