"""A simple hook with redis-py and rq, with one enqueue per job, for comparison.

It enqueues as many jobs as the real hook for the same event.
"""

import json
import sys

from redis import Redis
from rq import Queue, Retry

event = json.load(sys.stdin)
connection = Redis(unix_socket_path=sys.argv[1])
edits = ("Write", "Edit", "MultiEdit", "NotebookEdit", "Agent", "Task")
queues = ["high", "medium", "low"] if event.get("tool_name") in edits else ["medium"]
for name in queues:
    Queue(name, connection=connection).enqueue(
        "builtins.len",
        json.dumps({"session": event["session_id"], "tool": event.get("tool_name")}),
        result_ttl=60,
        retry=Retry(max=3, interval=[1, 2, 4]),
    )
