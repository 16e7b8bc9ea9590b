"""The process that executes the queue llm: `python -I workers/llm.py` with HIVEPIPE_HOME set.

Exits 0 on SIGTERM, SIGINT and SIGHUP after the current job, 75 if the home has one already.
"""

from hivepipe.worker.claiming_worker import serve
from hivepipe.worker.slow_worker import LlmWorker

if __name__ == "__main__":
    serve(LlmWorker)
