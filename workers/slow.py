"""The process that executes the queue slow: `python -I workers/slow.py` with HIVEPIPE_HOME set.

The process ends after the current job with exit code 0 on SIGTERM, SIGINT and SIGHUP. The exit code
is 75 if the home already has a slow worker.
"""

from hivepipe.worker.claiming_worker import serve
from hivepipe.worker.slow_worker import SlowWorker

if __name__ == "__main__":
    serve(SlowWorker)
