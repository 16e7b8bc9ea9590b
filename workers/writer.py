"""The process that executes the queues high, medium and low:
`python -I workers/writer.py` with HIVEPIPE_HOME set.

The process ends after the current jobs with exit code 0 on SIGTERM, SIGINT and SIGHUP. The exit
code is 75 if the home already has a writer.
"""

from hivepipe.worker.claiming_worker import serve
from hivepipe.worker.writer import Writer

if __name__ == "__main__":
    serve(Writer)
