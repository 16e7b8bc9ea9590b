"""The process that serves the page: `python -I workers/web.py` with HIVEPIPE_HOME set.

Exits 0 on SIGTERM and SIGINT, 1 if the extra `web` is not installed.
"""

import os

from hivepipe.config.config_file import load_and_use
from hivepipe.files import core_dumps
from hivepipe.home import locate
from hivepipe.jobs.process_log import set_up
from hivepipe.web import with_stack

if __name__ == "__main__":
    os.umask(0o077)
    core_dumps.leave_none()
    load_and_use()
    set_up("web")
    with_stack.run(locate("."))
