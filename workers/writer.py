"""The process that executes the queues high, medium and low:
`python -I workers/writer.py` with HIVEPIPE_HOME set.

Exits 0 on SIGTERM, SIGINT and SIGHUP after the current jobs, 75 if the home has one already.
"""

from hivepipe.worker.claiming_worker import serve
from hivepipe.worker.writer import Writer

if __name__ == "__main__":
    serve(Writer)
