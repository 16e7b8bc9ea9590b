"""The names of the queues; apart from `connection`, for redis-py takes long to import."""

QUEUES = ("high", "medium", "low")  # hooks push onto these alone; the writer serves them
SLOW, LLM = "slow", "llm"  # the writer hands on to these; a worker each
ALL_QUEUES = (*QUEUES, SLOW, LLM)
