"""Operations that add to a session's history: goals, notices, prompts, skills, memories, tasks."""

from hivepipe.jobs.args import Args, Id


class RecordGoal(Args, handler="history.record_goal"):
    """A compaction of the context: the trigger, and the session's task."""

    trigger: str = ""
    task_id: str = ""


class RecordNotice(Args, handler="history.record_notice"):
    """A notice of Claude Code, such as a question, a denial or a switch of the model."""

    kind: str = ""
    text: str = ""


class RecordPrompt(Args, handler="history.record_prompt"):
    """The user's prompt."""

    prompt_id: str = ""
    prompt: str = ""


class RecordSkill(Args, handler="history.record_skill"):
    """One use of a skill or of a typed command."""

    skill: str = ""
    source: str = ""
    success: bool = False
    arguments: str = ""
    prompt_id: str = ""


class AssignTask(Args, handler="tasks.assign_task"):
    """A session was started with a task."""

    task_id: Id
