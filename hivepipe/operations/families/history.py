"""Operations that add to a session's history: goals, notices, prompts, skills, memories, tasks."""

from hivepipe.jobs.args import Args, Id


class RecordGoal(Args, handler="history.record_goal"):
    """Log a compaction of the context: the trigger, and the session's task."""

    trigger: str = ""
    task_id: str = ""


class RecordNotice(Args, handler="history.record_notice"):
    """Log a notice of Claude Code, such as a question, a denial or a switch of the model."""

    kind: str = ""
    text: str = ""


class RecordPrompt(Args, handler="history.record_prompt"):
    """Record the user's prompt."""

    prompt_id: str = ""
    prompt: str = ""


class RecordSkill(Args, handler="history.record_skill"):
    """Record one use of a skill or of a typed command."""

    skill: str = ""
    source: str = ""
    success: bool = False
    arguments: str = ""
    prompt_id: str = ""


class AssignTask(Args, handler="tasks.assign_task"):
    """Assign a task to the session that was started with it."""

    task_id: Id
