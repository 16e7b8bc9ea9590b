"""The process that executes slow: `python -I workers/slow.py` with HIVEPIPE_HOME set.

Exits 0 on SIGTERM, SIGINT and SIGHUP after the work at hand, 75 if the home has one already.
"""

from hivepipe.worker.claiming_worker import serve
from hivepipe.worker.slow_worker import SlowWorker

if __name__ == "__main__":
    serve(SlowWorker)
