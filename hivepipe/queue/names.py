"""The names of the queues.

The names are not in `connection`, because redis-py is slow to import.
"""

QUEUES = ("high", "medium", "low")  # hooks push to these; the writer serves them
SLOW, LLM = "slow", "llm"  # the writer and workers push to these; each has its own worker
ALL_QUEUES = (*QUEUES, SLOW, LLM)
