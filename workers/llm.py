"""The process that executes the queue llm: `python -I workers/llm.py` with HIVEPIPE_HOME set.

The process ends after the current job with exit code 0 on SIGTERM, SIGINT and SIGHUP. The exit code
is 75 if the home already has an llm worker.
"""

from hivepipe.worker.claiming_worker import serve
from hivepipe.worker.slow_worker import LlmWorker

if __name__ == "__main__":
    serve(LlmWorker)
