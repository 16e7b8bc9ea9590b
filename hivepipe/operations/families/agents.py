"""Operations of agents: the four events of an agent, which may arrive in any order."""

from hivepipe.jobs.args import Args, Id

TASK_COMPLETE = "task_complete"


class Agent(Args):
    """An agent, and its tokens and duration if they are known."""

    agent_id: Id
    type: str = ""
    tokens: int | None = None
    duration_ms: int | None = None


class AgentCall(Agent):
    """A call of the Agent tool."""

    tool_use_id: str = ""
    model: str = ""
    description: str = ""


class InsertAgent(AgentCall, handler="agents.insert_agent"):
    """Record that the Agent tool returned; `launch` is "completed" if the agent has finished."""

    launch: str = ""

    def cleanup_cause(self) -> str:
        return TASK_COMPLETE if self.launch == "completed" else ""


class FailAgent(AgentCall, handler="agents.fail_agent"):
    """Record that the Agent tool failed, or that the user interrupted it."""

    is_interrupt: bool = False
    error: str = ""

    def cleanup_cause(self) -> str:
        return TASK_COMPLETE


class StartAgent(Agent, handler="agents.start_agent"):
    """Record that an agent was spawned or resumed, or caused an event."""


class FinishAgent(Agent, handler="agents.finish_agent"):
    """Record that an agent finished or failed."""

    agent_transcript_path: str = ""
    failed: bool = False
    error: str = ""

    def cleanup_cause(self) -> str:
        return TASK_COMPLETE
