"""The names of the queues. Separate from `connection`, because redis-py is slow to import."""

QUEUES = ("high", "medium", "low")  # hooks push to these only; the writer serves them
SLOW, LLM = "slow", "llm"  # from the writer and from workers; each has its own worker
ALL_QUEUES = (*QUEUES, SLOW, LLM)
