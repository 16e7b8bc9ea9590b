"""The process that serves the page: `python -I workers/web.py` with HIVEPIPE_HOME set.

The exit code is 0 after SIGTERM or SIGINT, and 1 if the extra `web` is not installed.
"""

from hivepipe.web import with_stack
from hivepipe.worker.own_process import begin

if __name__ == "__main__":
    with_stack.run(begin("web")[0])
